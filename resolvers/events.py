"""The feed as subscribers and lists see it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from db import nodes as node_store
from db.database import Database
from db.declared.events import BY_POSITION, EVENTS
from db.declared.nodes import NodeQuery
from db.views.selection import Asked
from domain import cursor
from domain.access import Permission
from domain.cursor import FeedCursor
from domain.feed import Wanted, read_snapshot
from domain.ids import TenantId
from resolvers.batches import Batch
from resolvers.connections import page_size
from resolvers.context import Context
from resolvers.feed import FeedEvent
from resolvers.reading import refuse_wide_filter
from resolvers.reads import Page
from resolvers.results import Shown

EVERYTHING: Final = NodeQuery()


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events; empty sets and an empty node query ask nothing."""

    types: frozenset[str] = frozenset()
    node_ids: frozenset[str] = frozenset()
    nodes: NodeQuery = EVERYTHING
    conditions: frozenset[str] = frozenset()
    """Types of conditions, of events about conditions."""

    def of(self, tenant_id: TenantId) -> Wanted:
        """Return what is asked of a tenant's events themselves."""
        return Wanted(tenant_id, self.types, self.node_ids, self.conditions)


async def subscribe(context: Context, query: EventQuery, after: str | None) -> AsyncIterator[Batch]:
    """Yield the tenant's events behind `after` that fit, each once and in order, then every new one.

    Raises CursorExpired when the log no longer holds what follows. Filters run here, before any field is executed.
    """
    tenant_id = context.require(Permission.READ)
    _refuse_wide(query)
    after = context.last_event_id or after
    start = await context.services.feed.end() if after is None else cursor.decode_feed(after)
    shown, database = Shown(), context.services.database

    async def choose(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
        return await _about_fitting(database, tenant_id, query.nodes, found)

    with context.standing(start) as standing:
        async for chosen in context.services.streams.follow(query.of(tenant_id), query.nodes, choose, standing):
            yield Batch(chosen, context, shown, standing)


async def _about_fitting(
    database: Database, tenant_id: TenantId, nodes: NodeQuery, found: Sequence[FeedEvent]
) -> Sequence[FeedEvent]:
    if nodes == EVERYTHING:
        return found
    about = sorted({event.row.node_id for event in found if event.row.node_id is not None})
    async with database.session() as tx:
        matching = await node_store.matching_nodes(tx, tenant_id, nodes, about)
    return [event for event in found if event.row.node_id in matching]


def events(context: Context, query: EventQuery, first: int | None, after: str | None) -> Page:
    """List the log from its start, or behind a feed cursor; reading it raises CursorExpired.

    The call itself says what the operation must read, before any of its fields reads.
    """
    context.require(Permission.READ)
    _refuse_wide(query)
    size = page_size(first)
    start = FeedCursor(0) if after is None else cursor.decode_feed(after)
    given = {"type": tuple(sorted(query.types)), "node_id": tuple(sorted(query.node_ids))}
    where = [EVENTS.where(name, value) for name, value in given.items() if value]
    if after is None:
        return Page(EVENTS, Asked(tuple(where), BY_POSITION, size, None, cursor.feed_frame(start)))
    where.append(EVENTS.where("behind", start.position))
    if start.snapshot is not None:
        read_snapshot(start.snapshot)
        where.append(EVENTS.where("unseen", start.snapshot))
    # A replica that has not come so far would take it for a cursor of another log.
    context.needs(FeedCursor(start.position))
    return Page(EVENTS, Asked(tuple(where), BY_POSITION, size, (start.position,), cursor.feed_frame(start)))


def _refuse_wide(query: EventQuery) -> None:
    refuse_wide_filter(
        tuple(query.node_ids), tuple(query.types), tuple(query.conditions), *query.nodes.lists(), text=query.nodes.text
    )
