"""Conditions of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.connections import Row
from db.database import Transaction
from domain.conditions import Condition, ConditionStatus
from domain.ids import NodeId, TenantId

_OF_NODES = """
select node_id, type, status, reason, message, since, no_schedule from node_conditions
where node_id = any ($1) order by node_id, type
"""
_OF_TYPES = """
select node_id, type, status, reason, message, since, no_schedule from node_conditions
where node_id = any ($1) and type = any ($2)
"""
_SAVE = """
insert into node_conditions (node_id, tenant_id, type, status, reason, message, since, no_schedule)
select * from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::bool[]
)
on conflict (node_id, type) do update set status = excluded.status, reason = excluded.reason,
    message = excluded.message, since = excluded.since, no_schedule = excluded.no_schedule
"""


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition with its node."""

    tenant_id: TenantId
    node_id: NodeId
    condition: Condition


def condition_of(row: Row) -> Condition:
    """Return a row as the domain sees it."""
    return Condition(row.type, ConditionStatus(row.status), row.reason, row.message, row.since, row.no_schedule)


async def conditions_of_nodes(tx: Transaction, node_ids: Sequence[str]) -> list[Row]:
    """Return the conditions of many nodes, by type, of whatever tenant."""
    return await tx.fetch(_OF_NODES, list(node_ids))


async def conditions_of_types(tx: Transaction, node_ids: Sequence[str], types: Sequence[str]) -> list[Row]:
    """Return those of some types, in no order, of whatever tenant."""
    return await tx.fetch(_OF_TYPES, list(node_ids), list(types))


async def save_conditions(tx: Transaction, changed: Sequence[NodeCondition]) -> None:
    """Write changed conditions in one statement."""
    if not changed:
        return
    await tx.execute(
        _SAVE,
        [entry.node_id for entry in changed],
        [entry.tenant_id for entry in changed],
        [entry.condition.type for entry in changed],
        [entry.condition.status.value for entry in changed],
        [entry.condition.reason for entry in changed],
        [entry.condition.message for entry in changed],
        [entry.condition.since for entry in changed],
        [entry.condition.no_schedule for entry in changed],
    )
