"""Telling changes of nodes that no event of their own tells: by comparing what was with what is."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from db.database import Transaction
from db.events import NewEvent, write_events
from domain.events import node_changed
from domain.ids import NodeId, TenantId

_STATES: Final = """
select n.id, n.tenant_id, jsonb_build_object(
    'hostname', n.hostname, 'displayName', n.display_name, 'managementAddress', n.management_address,
    'agentVersion', n.agent_version, 'protocol', n.protocol, 'features', n.features, 'bootId', n.boot_id,
    'certificate', to_jsonb(c) - 'tenant_id', 'provisionState', n.provision_state, 'trust', n.trust, 'role', n.role,
    'power', n.power, 'site', n.site_id, 'pool', n.pool_id, 'units', n.units, 'generation', n.generation,
    'labels', jsonb_build_array(n.agent_labels, n.operator_labels, n.inventory_labels, n.system_labels),
    'hardwareKey', jsonb_build_array(n.hardware_key, n.hardware_key_trusted, n.hardware_evidence),
    'fingerprint', n.fingerprint, 'noScheduleReasons', n.no_schedule_reasons,
    'acceptance', (select max(a.attempt) from acceptance_attempts a where a.node_id = n.id),
    'inventoryStatus', jsonb_build_array(i.reported, i.missing, i.applied_digest, i.failed_at, i.error)
) as state
from nodes n left join node_certificates c on c.node_id = n.id left join node_inventory i on i.node_id = n.id
where n.id = any ($1)
"""
States = Mapping[NodeId, Mapping[str, Any]]


async def node_states(tx: Transaction, node_ids: Collection[NodeId]) -> States:
    """Return what `tell_changes` compares, of those nodes that there are."""
    rows = await tx.fetch(_STATES, list(node_ids)) if node_ids else []
    return {NodeId(row.id): row.state for row in rows}


async def tell_changes(
    tx: Transaction,
    before: States,
    nodes: Collection[tuple[TenantId, NodeId]],
    more: Mapping[NodeId, Sequence[str]] | None = None,
) -> None:
    """Tell what the transaction has changed of nodes since `before`, with `more` that is known to have changed."""
    tenants = {node_id: tenant_id for tenant_id, node_id in nodes}
    for node_id, state in (await node_states(tx, tenants)).items():
        was = before.get(node_id, {})
        changed = [name for name in state if state[name] != was.get(name)]
        await tell_changed(tx, [(tenants[node_id], node_id)], [*changed, *(more or {}).get(node_id, ())])


async def tell_changed(tx: Transaction, nodes: Sequence[tuple[TenantId, NodeId]], names: Sequence[str]) -> None:
    """Tell that these fields of nodes have changed."""
    if names:
        event = node_changed(names)
        await write_events(
            tx, [NewEvent(tenant_id, node_id, event.type, event.payload) for tenant_id, node_id in nodes]
        )
