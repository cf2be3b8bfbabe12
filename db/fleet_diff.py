"""Which nodes changed between two times: what is read follows from the changes, not from the fleet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement

from db.connections import Row
from db.database import Reader
from db.declared.nodes import NODES, nodes
from db.declared.snapshots import snapshots
from db.views.draft import Draft
from db.views.plan import Compiled, compile_statement
from db.views.selection import Asked, Shape
from db.views.view import Where
from domain.ids import TenantId

# The snapshots on both sides of each node's changes: the last that it had at either time.
_SIDES: Final = """
select b.node_id, older.id as older_id, newer.id as newer_id
from unnest($1::text[]) as b (node_id)
left join lateral (
    select s.id from inventory_snapshots s
    where s.node_id = b.node_id and s.tenant_id = $2 and s.received_at <= $3
    order by s.received_at desc, s.id desc limit 1
) older on true
join lateral (
    select s.id from inventory_snapshots s
    where s.node_id = b.node_id and s.tenant_id = $2 and s.received_at <= $4
    order by s.received_at desc, s.id desc limit 1
) newer on true
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """The time after `since`, up to and with `until`."""

    since: datetime
    until: datetime


async def changed_nodes(
    reader: Reader, tenant_id: TenantId, where: tuple[Where, ...], interval: Interval, page: tuple[str, int]
) -> list[str]:
    """Return the ids of nodes that fit and had snapshots in the interval: up to `page[1]` of them behind `page[0]`."""
    asked = Asked(where)
    compiled = _changed(asked.shape, counted=False)
    values = [tenant_id, *asked.values(), interval.since, interval.until, *page]
    return [row.node_id for row in await reader.fetch(compiled.text, *compiled.arguments(values))]


async def count_changed(reader: Reader, tenant_id: TenantId, where: tuple[Where, ...], interval: Interval) -> int:
    """Count those nodes."""
    asked = Asked(where)
    compiled = _changed(asked.shape, counted=True)
    values = [tenant_id, *asked.values(), interval.since, interval.until]
    return int((await reader.fetch(compiled.text, *compiled.arguments(values)))[0][0])


async def sides(
    reader: Reader, tenant_id: TenantId, node_ids: Sequence[str], interval: Interval
) -> dict[str, tuple[str | None, str]]:
    """Return the ids of the snapshots that nodes had at both ends; the older is None where there was none yet."""
    rows: list[Row] = await reader.fetch(_SIDES, list(node_ids), tenant_id, interval.since, interval.until)
    return {row.node_id: (row.older_id, row.newer_id) for row in rows}


@lru_cache(64)
def _changed(shape: Shape, *, counted: bool) -> Compiled:
    draft = Draft([shape.asked])
    moment = sa.DateTime(timezone=True)
    found = snapshots.alias("s")
    conditions: list[ColumnElement[bool]] = [
        found.c.tenant_id == draft.tenant,
        found.c.received_at > draft.bind(draft.end, moment),
        found.c.received_at <= draft.bind(draft.end + 1, moment),
    ]
    if shape.asked.where:
        opened = draft.open(NODES, 0, [nodes.c.id])
        conditions.append(found.c.node_id.in_(opened.select([("id", nodes.c.id)])))
    changed: Any = sa.select(found.c.node_id).where(*conditions).distinct()
    if counted:
        return compile_statement(sa.select(sa.func.count()).select_from(changed.subquery("changed")))
    changed = changed.where(found.c.node_id > draft.bind(draft.end + 2, sa.Text()))
    return compile_statement(changed.order_by(found.c.node_id).limit(draft.bind(draft.end + 3, sa.BigInteger())))
