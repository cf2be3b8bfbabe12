"""Faults of kernel logs with their verdicts."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from db.connections import Row
from db.database import Transaction
from db.tables import NodeFaultRow, table_of
from db.tables.columns import JSONB
from db.views.plan import compile_statement
from domain.ids import DeviceId, NodeId, TenantId
from domain.kernel_faults import FaultKind
from domain.node_fault import FaultEnd, NodeFault
from domain.xid_rules import XidPolicy, XidRemedy
from domain.xid_verdict import Scope

PRUNED_MAX: Final = 10_000
_faults: Final = table_of(NodeFaultRow)
_FACTS: Final = tuple(field.name for field in fields(NodeFault))
_OWNED: Final = ("tenant_id", "node_id", *_FACTS)
_KEY: Final = ("node_id", "boot_id", "key")
# Of earlier boots only what holds is of use; of the present one all, which tells what is repeated.
_OF_NODES: Final = """
select f.* from node_faults f join nodes n on n.id = f.node_id
where f.node_id = any ($1)
    and (n.boot_id is null or f.boot_id = n.boot_id or (f.condition is not null and f.ended_at is null))
order by f.node_id, f.boot_id, f.key
"""
_GIVEN: Final = (
    sa.func.jsonb_to_recordset(sa.bindparam("v0", type_=JSONB))
    .table_valued(*(sa.column(name, _faults.c[name].type) for name in _OWNED))
    .render_derived(name="given", with_types=True)
)


_NEW: Final = insert(_faults).from_select(list(_OWNED), sa.select(*(_GIVEN.c[name] for name in _OWNED)))
_SAVE: Final = compile_statement(
    _NEW.on_conflict_do_update(
        index_elements=list(_KEY), set_={name: _NEW.excluded[name] for name in _OWNED if name not in _KEY}
    )
)
_HOLDING: Final = """
select distinct node_id from node_faults
where condition is not null and ended_at is null and node_id > $1 order by node_id limit $2
"""
_RAISED: Final = """
select node_id, array_agg(distinct condition) as types from node_faults
where node_id = any ($1) and condition is not null and ended_at is null group by node_id
"""
_PRUNE: Final = """
delete from node_faults f where (f.node_id, f.boot_id, f.key) in (
    select o.node_id, o.boot_id, o.key from node_faults o join nodes n on n.id = o.node_id
    where o.boot_id is distinct from n.boot_id and n.boot_id is not null and o.last_at < $1
        and (o.condition is null or o.ended_at is not null)
    limit $2 for update of o skip locked
)
"""


def fault_of(row: Row) -> NodeFault:
    """Return a row as the domain sees it."""
    return NodeFault(
        **{name: row[name] for name in _FACTS}
        | {
            "kind": FaultKind(row.kind),
            "device_id": None if row.device_id is None else DeviceId(row.device_id),
            "policy": XidPolicy(row.policy),
            "scope": Scope(row.scope),
            "remedy": None if row.remedy is None else XidRemedy(row.remedy),
            "end": None if row.end is None else FaultEnd(row.end),
        }
    )


async def faults_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> dict[NodeId, list[NodeFault]]:
    """Return the faults of the nodes' present boots, and those of earlier ones that still hold, of whatever tenant."""
    found: dict[NodeId, list[NodeFault]] = {node_id: [] for node_id in node_ids}
    for row in await tx.fetch(_OF_NODES, list(node_ids)):
        found[NodeId(row.node_id)].append(fault_of(row))
    return found


async def save_faults(tx: Transaction, changed: Sequence[tuple[TenantId, NodeId, NodeFault]]) -> None:
    """Write faults in one statement."""
    if changed:
        rows = [
            {"tenant_id": tenant_id, "node_id": node_id, **{name: getattr(fault, name) for name in _FACTS}}
            for tenant_id, node_id, fault in changed
        ]
        await tx.execute(_SAVE.text, *_SAVE.arguments([rows]))


async def prune_faults(tx: Transaction, before: datetime) -> None:
    """Forget faults of earlier boots that are over; those of a present boot are needed to know what is repeated."""
    await tx.execute(_PRUNE, before, PRUNED_MAX)


async def nodes_with_faults(tx: Transaction, after: str, limit: int) -> list[NodeId]:
    """Return the next nodes after an id, of whatever tenant, of which a fault holds."""
    return [NodeId(row.node_id) for row in await tx.fetch(_HOLDING, after, limit)]


async def raised_types(tx: Transaction, node_ids: Sequence[NodeId]) -> dict[str, frozenset[str]]:
    """Return the types of conditions that faults raise now, of those nodes of which one holds."""
    return {row.node_id: frozenset(row.types) for row in await tx.fetch(_RAISED, list(node_ids))}
