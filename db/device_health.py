"""Faults of devices: read by the reconciler, written set-based."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.connections import Row
from db.database import Transaction
from domain.device_health import DeviceHealth, HealthPlan, HealthSource
from domain.ids import DeviceId, NodeId, TenantId

_OF_NODES = """
select node_id, device_id, source, cause, reason, message, rule, since from device_health
where node_id = any ($1) order by device_id, source, cause
"""
_SAVE = """
insert into device_health (device_id, source, cause, tenant_id, node_id, reason, message, rule, since)
select * from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[]
)
on conflict (device_id, source, cause) do update set reason = excluded.reason, message = excluded.message,
    rule = excluded.rule, since = excluded.since
"""
_DELETE = """
delete from device_health h
using unnest($1::text[], $2::text[], $3::text[]) as d (device_id, source, cause)
where h.device_id = d.device_id and h.source = d.source and h.cause = d.cause
"""


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """What is to change of the faults of a node's devices."""

    tenant_id: TenantId
    node_id: NodeId
    plan: HealthPlan


def health_of(row: Row) -> DeviceHealth:
    """Return a row as the domain sees it."""
    return DeviceHealth(
        device_id=DeviceId(row.device_id),
        source=HealthSource(row.source),
        cause=row.cause,
        reason=row.reason,
        message=row.message,
        rule=row.rule,
        since=row.since,
    )


async def health_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> dict[str, list[DeviceHealth]]:
    """Return the faults of many nodes' devices, by node, of whatever tenant."""
    found: dict[str, list[DeviceHealth]] = {node_id: [] for node_id in node_ids}
    for row in await tx.fetch(_OF_NODES, list(node_ids)):
        found[row.node_id].append(health_of(row))
    return found


async def save_health(tx: Transaction, changes: Sequence[NodeHealth]) -> None:
    """Write what changed, in at most two statements; the devices are there already."""
    ended = [each.health for change in changes for each in change.plan.ended]
    if ended:
        await tx.execute(
            _DELETE,
            [fault.device_id for fault in ended],
            [fault.source.value for fault in ended],
            [fault.cause for fault in ended],
        )
    faults = [(change, fault) for change in changes for fault in change.plan.write]
    if faults:
        await tx.execute(
            _SAVE,
            [fault.device_id for _, fault in faults],
            [fault.source.value for _, fault in faults],
            [fault.cause for _, fault in faults],
            [change.tenant_id for change, _ in faults],
            [change.node_id for change, _ in faults],
            [fault.reason for _, fault in faults],
            [fault.message for _, fault in faults],
            [fault.rule for _, fault in faults],
            [fault.since for _, fault in faults],
        )
