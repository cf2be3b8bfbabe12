"""The health of nodes, whole: loaded as it is written, and saved with the events that tell what changed."""

from collections.abc import Sequence
from typing import Final

from db.conditions import condition_of, conditions_of_nodes
from db.connections import Row
from db.database import Transaction
from db.degradations import tell_turned
from db.device_health import NodeHealth, health_of_nodes, save_health
from db.devices import device_of, devices_of_nodes
from db.events import NewEvent, write_events
from db.node_faults import faults_of_nodes, save_faults
from db.standings import save_changes
from domain.conditions import Condition
from domain.device import Device
from domain.fault_effects import HealthChange, HealthState
from domain.ids import DeviceId, NodeId, TenantId
from domain.node import Trust
from domain.pool_policy import read_policy
from domain.standing import Standing

_FACTS: Final = """
select n.id, n.tenant_id, n.trust, n.boot_id, n.no_schedule_reasons, p.policy, i.reported_at, i.applied, i.reported
from nodes n left join pools p on p.id = n.pool_id left join node_inventory i on i.node_id = n.id
"""
_NODES: Final = f"{_FACTS} where n.id = any ($1) order by n.id"
_OF_TENANTS: Final = f"""
{_FACTS} where (n.tenant_id, n.id) in (select * from unnest($1::text[], $2::text[])) and n.provision_state <> 'retired'
order by n.id
"""  # noqa: S608 - text of ours
_LOCK: Final = " for no key update of n"
_TURN: Final = """
update devices d set healthy = t.healthy, updated_at = now()
from unnest($1::text[], $2::text[], $3::bool[]) t (id, node_id, healthy)
where d.id = t.id and d.node_id = t.node_id and d.healthy <> t.healthy
"""
_OWNER: Final = "select node_id from devices where tenant_id = $1 and id = $2"


async def node_of_device(tx: Transaction, tenant_id: TenantId, device_id: str) -> NodeId | None:
    """Return the node that has a device of the tenant's, None for none."""
    found = await tx.value(_OWNER, tenant_id, device_id)
    return None if found is None else NodeId(found)


async def health_states(tx: Transaction, node_ids: Sequence[NodeId], *, locked: bool) -> dict[NodeId, HealthState]:
    """Return the health of nodes of whatever tenant; `locked` keeps them as they are until the end."""
    return await _states(tx, await tx.fetch(_NODES + _LOCK if locked else _NODES, list(node_ids)))


async def health_states_of(
    tx: Transaction, nodes: Sequence[tuple[TenantId, NodeId]], *, locked: bool
) -> dict[NodeId, HealthState]:
    """Return the same of those nodes that their tenant has and that are not retired."""
    tenants, ids = [tenant_id for tenant_id, _ in nodes], [node_id for _, node_id in nodes]
    return await _states(tx, await tx.fetch(_OF_TENANTS + _LOCK if locked else _OF_TENANTS, tenants, ids))


async def _states(tx: Transaction, rows: Sequence[Row]) -> dict[NodeId, HealthState]:
    # After the lock: in statements of their own, which see what was committed while it was waited for.
    found = [NodeId(row.id) for row in rows]
    conditions: dict[str, dict[str, Condition]] = {node_id: {} for node_id in found}
    for row in await conditions_of_nodes(tx, found):
        conditions[row.node_id][row.type] = condition_of(row)
    devices: dict[str, dict[DeviceId, Device]] = {node_id: {} for node_id in found}
    for row in await devices_of_nodes(tx, found):
        devices[row.node_id][DeviceId(row.id)] = device_of(row)
    health = await health_of_nodes(tx, found)
    faults = await faults_of_nodes(tx, found)
    return {
        NodeId(row.id): HealthState(
            standing=Standing(
                node_id=NodeId(row.id),
                tenant_id=TenantId(row.tenant_id),
                trust=Trust(row.trust),
                conditions=conditions[row.id],
                no_schedule_reasons=tuple(row.no_schedule_reasons),
            ),
            boot_id=row.boot_id,
            devices=devices[row.id],
            health=tuple(health[row.id]),
            faults=tuple(faults[NodeId(row.id)]),
            inventory_at=row.reported_at if row.applied is not None and row.applied == row.reported else None,
            overrides=read_policy(row.policy).xid_policies if row.policy else {},
        )
        for row in rows
    }


async def save_health_changes(tx: Transaction, changes: Sequence[tuple[Standing, HealthChange]]) -> None:
    """Write what changes of nodes' health, with the events that tell it; the nodes are locked."""
    if not changes:
        return
    await save_faults(
        tx, [(node.tenant_id, node.node_id, fault) for node, change in changes for fault in change.faults]
    )
    await save_health(tx, [NodeHealth(node.tenant_id, node.node_id, change.health) for node, change in changes])
    turned = [(node.node_id, device) for node, change in changes for device in change.devices]
    if turned:
        await tx.execute(
            _TURN,
            [device.id for _, device in turned],
            [node_id for node_id, _ in turned],
            [device.healthy for _, device in turned],
        )
    await write_events(
        tx,
        [
            NewEvent(node.tenant_id, node.node_id, event.type, event.payload)
            for node, change in changes
            for event in change.events
        ],
    )
    await save_changes(tx, [(node, change.conditions) for node, change in changes if change.conditions is not None])
    await tell_turned(tx, {device.id for _, device in turned})
