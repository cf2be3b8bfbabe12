"""The live fleet view as a subscriber sees it."""

from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass

from db.declared.nodes import NODES, NodeQuery
from db.views.selection import Asked
from domain.access import Permission
from domain.cursor import FeedCursor, decode_feed, encode_feed
from domain.node_view import ViewChange
from resolvers.batches import Batch
from resolvers.context import Context
from resolvers.reading import refuse_wide_filter
from resolvers.reads import One
from resolvers.results import Shown


@dataclass(frozen=True, slots=True)
class ToldChange:
    """A change of a view as subscribers are told it."""

    kind: ViewChange
    node_id: str | None
    place: FeedCursor | None
    key: Hashable

    @property
    def cursor(self) -> str | None:
        """Where to resume behind it, as clients are told it."""
        return None if self.place is None else encode_feed(self.place)

    @property
    def node(self) -> One | None:
        """The node as it is when it is read, which is never before the change; None for one that left."""
        if self.node_id is None or self.kind is ViewChange.LEFT:
            return None
        return One(NODES, Asked((NODES.where("id", (self.node_id,)),)), self.node_id)


async def follow_nodes(context: Context, query: NodeQuery, after: str | None) -> AsyncIterator[Batch]:
    """Yield the tenant's nodes that fit, or what may have changed since a cursor; a mark; then every change.

    Raises InvalidInput, and CursorExpired when the log no longer holds what follows.
    """
    tenant_id = context.require(Permission.READ)
    refuse_wide_filter(*query.lists(), text=query.text)
    after = context.last_event_id or after
    start = None if after is None else decode_feed(after)
    shown = Shown()
    with context.standing(start) as standing:
        async for told in context.services.views.follow(tenant_id, query, start):
            changes = [ToldChange(each.change, each.node_id, each.cursor, each.key) for each in told]
            yield Batch(changes, context, shown, standing)
