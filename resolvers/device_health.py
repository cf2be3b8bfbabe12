"""What operators say of devices' health: faults that are over, and devices that nobody is to be given (rule 10)."""

from collections.abc import Callable
from datetime import datetime

from db.database import Transaction
from db.health_states import health_states_of, node_of_device, save_health_changes
from domain.access import Permission
from domain.errors import NotFound
from domain.fault_effects import HealthChange, HealthState
from domain.ids import DeviceId, NodeId, TenantId, has_prefix
from domain.operator_health import clear, clear_node, put_in_quarantine
from domain.texts import given_text, required_text
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One

Decide = Callable[[HealthState, DeviceId, datetime], HealthChange | None]


async def clear_device_health(context: Context, device_id: str, reason: str | None) -> One:
    """End the faults of a device that its kernel log or an operator told; raises NotFound.

    What its inventory shows stays as long as the inventory shows it.
    """
    given_text("reason", reason)
    by = reading.viewer(context).name
    return await _decide(context, device_id, lambda state, device, now: clear(state, device, now, by=by, reason=reason))


async def clear_node_faults(context: Context, node_id: str, reason: str | None) -> One:
    """End all faults that a node's kernel log told; raises NotFound."""
    tenant_id = context.require(Permission.OPERATE)
    given_text("reason", reason)
    by = reading.viewer(context).name
    async with context.transaction() as tx:
        known = has_prefix(node_id, "node")
        states = await health_states_of(tx, [(tenant_id, NodeId(node_id))], locked=True) if known else {}
        state = states.get(NodeId(node_id))
        if state is None:
            raise NotFound(f"no node {node_id[:64]!r}")
        change = clear_node(state, context.services.now(), by=by, reason=reason)
        if change is not None:
            await save_health_changes(tx, [(state.standing, change)])
    return reading.node(context, node_id)


async def quarantine_device(context: Context, device_id: str, reason: str) -> One:
    """Take a device out of placement until it is cleared; raises NotFound."""
    required_text("reason", reason)
    by = reading.viewer(context).name
    return await _decide(
        context, device_id, lambda state, device, now: put_in_quarantine(state, device, now, by=by, reason=reason)
    )


async def _decide(context: Context, device_id: str, decide: Decide) -> One:
    tenant_id = context.require(Permission.OPERATE)
    async with context.transaction() as tx:
        state = await _locked(tx, tenant_id, device_id)
        change = decide(state, DeviceId(device_id), context.services.now())
        if change is not None:
            await save_health_changes(tx, [(state.standing, change)])
    return reading.device(context, device_id)


async def _locked(tx: Transaction, tenant_id: TenantId, device_id: str) -> HealthState:
    node_id = await node_of_device(tx, tenant_id, device_id)
    if node_id is not None:
        states = await health_states_of(tx, [(tenant_id, NodeId(node_id))], locked=True)
        # It may have left its node while the lock was waited for.
        if node_id in states and device_id in states[node_id].devices:
            return states[node_id]
    raise NotFound(f"no device {device_id[:256]!r}")
