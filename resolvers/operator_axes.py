"""Cordoning, draining and maintaining nodes; the same again changes nothing and tells nothing."""

from collections.abc import Callable

from db.operator_axes import AxesChange, lock_axes, save_axes
from domain.access import Permission
from domain.errors import NotFound
from domain.ids import NodeId, has_prefix
from domain.operator_axes import OperatorAxes, axis_events, cordon, drain, end_maintenance, maintain, uncordon
from domain.texts import given_text
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One


async def cordon_node(context: Context, node_id: str) -> One:
    """Give a node no new work; raises NotFound."""
    return await _change(context, node_id, cordon)


async def uncordon_node(context: Context, node_id: str) -> One:
    """Give a node work again, and stop emptying it; raises NotFound."""
    return await _change(context, node_id, uncordon)


async def drain_node(context: Context, node_id: str) -> One:
    """Cordon a node and wait for its end of work; nothing is released. Raises NotFound."""
    return await _change(context, node_id, drain)


async def set_maintenance(context: Context, node_id: str, reason: str | None, *, on: bool) -> One:
    """Put a node in maintenance, or take it out; raises InvalidInput or NotFound."""
    context.require(Permission.OPERATE)
    given_text("reason", reason)
    if not on:
        return await _change(context, node_id, end_maintenance, reason)
    by, now = reading.viewer(context).name, context.services.now()
    return await _change(context, node_id, lambda axes: maintain(axes, reason, by, now), reason)


async def _change(
    context: Context, node_id: str, decide: Callable[[OperatorAxes], OperatorAxes], reason: str | None = None
) -> One:
    tenant_id = context.require(Permission.OPERATE)
    by = reading.viewer(context).name
    async with context.transaction() as tx:
        before = await lock_axes(tx, tenant_id, NodeId(node_id)) if has_prefix(node_id, "node") else None
        if before is None:
            raise NotFound(f"no node {node_id[:64]!r}")
        after = decide(before)
        if after != before:
            events = axis_events(before, after, by=by, reason=reason)
            await save_axes(tx, [AxesChange(tenant_id, NodeId(node_id), after, events)])
    return reading.node(context, node_id)
