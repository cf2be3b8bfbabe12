"""What changed in a fleet between two times."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from db import fleet_diff as store
from db.connections import Row
from db.declared.nodes import NodeQuery
from db.declared.snapshots import SNAPSHOTS
from db.fleet_diff import Interval
from db.views import loading
from db.views.selection import Asked
from domain import cursor
from domain.access import Permission
from domain.diff import Change
from domain.errors import InvalidInput
from domain.texts import storable_time
from resolvers import inventories, reading
from resolvers.connections import Connection, page_size
from resolvers.context import Context
from resolvers.reads import One

COMPARED_MAX: Final = 200
_SCOPE: Final = "fleetDiff:id"


@dataclass(frozen=True, slots=True)
class NodeDiff:
    """What changed of one node; without an older snapshot it is new, and nothing of it can have changed."""

    node_id: str
    cursor: str
    from_: Row | None
    to: Row
    changes: Sequence[Change]

    def node(self, context: Context) -> One:
        """Ask for the node."""
        return reading.node(context, self.node_id)


async def fleet_diff(  # noqa: PLR0913 - a list's arguments and its interval
    context: Context, query: NodeQuery, since: datetime, until: datetime, *, first: int | None, after: str | None
) -> Connection:
    """Compare the snapshots that nodes had at two times, of those nodes only that reported something in between.

    Raises InvalidInput for times without a zone or in the wrong order.
    """
    tenant_id = context.require(Permission.READ)
    reading.refuse_wide_filter(*query.lists(), text=query.text)
    interval = Interval(storable_time("from", since), storable_time("to", until))
    if interval.until < interval.since:
        raise InvalidInput(f"to: {until.isoformat()} is before from; give the earlier time as from")
    size = page_size(first)
    if size > COMPARED_MAX:
        raise InvalidInput(f"first: {first}; at most {COMPARED_MAX} nodes are compared at once")
    behind = "" if after is None else cursor.decode_page(after, _SCOPE, 1)[0]
    where = query.where()
    ids = await store.changed_nodes(context.reader, tenant_id, where, interval, (behind, size + 1))
    shown = await _compared(context, ids[:size], interval)

    async def count() -> int:
        return await store.count_changed(context.reader, tenant_id, where, interval)

    return Connection(shown, len(ids) > size, after is not None, count)


async def _compared(context: Context, node_ids: Sequence[str], interval: Interval) -> list[NodeDiff]:
    tenant_id = context.require(Permission.READ)
    found = await store.sides(context.reader, tenant_id, node_ids, interval)
    ids = sorted({each for sides in found.values() for each in sides if each is not None})
    asked = Asked((SNAPSHOTS.where("id", ids),))
    rows = {row.id: row for row in await loading.load_rows(context.reader, tenant_id, SNAPSHOTS, asked)}

    async def compare(node_id: str) -> NodeDiff:
        older_id, newer_id = found[node_id]
        older = rows[older_id] if older_id is not None else None
        difference = await inventories.difference(context, older, rows[newer_id])
        place = cursor.encode_page(_SCOPE, (node_id,))
        return NodeDiff(node_id, place, older, rows[newer_id], difference.changes)

    # At once, so that the sections of all of them are loaded together.
    return await asyncio.gather(*map(compare, node_ids))
