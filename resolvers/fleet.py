"""Sites and pools, and which pool a node is in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from db import fleet as store
from db.acceptance import begin_attempt, lock_adoptable
from db.connections import Row
from db.fleet import NewPool, NewSite, PoolFacts
from db.identifiers import new_id
from db.node_changes import node_states, tell_changed, tell_changes
from db.node_spec import set_units
from domain.acceptance import next_attempt
from domain.access import Permission
from domain.errors import Conflict, NotFound
from domain.ids import NodeId, PoolId, SiteId
from domain.node import Trust
from domain.node_spec import Unit, read_units
from domain.pool_policy import read_policy
from domain.texts import given_text, required_text
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One


async def create_site(context: Context, new: NewSite) -> Row:
    """Add a site; raises InvalidInput, or Conflict when the name is taken."""
    tenant_id = context.require(Permission.OPERATE)
    required_text("name", new.name)
    required_text("iamRegion", new.iam_region)
    async with context.transaction() as tx:
        row = await store.add_site(tx, tenant_id, SiteId(new_id("site")), new)
    if row is None:
        raise Conflict(f"name: a site {new.name!r} exists already")
    return row


async def create_pool(context: Context, new: NewPool) -> Row:
    """Add a pool; raises InvalidInput, NotFound for its site, or Conflict when the name is taken."""
    tenant_id = context.require(Permission.OPERATE)
    required_text("name", new.name)
    given_text("gpuModel", new.gpu_model)
    read_policy(new.policy)
    await reading.site(context, new.site_id).load(context)
    async with context.transaction() as tx:
        row = await store.add_pool(tx, tenant_id, PoolId(new_id("pool")), new)
    if row is None:
        raise Conflict(f"name: a pool {new.name!r} exists already")
    return row


@dataclass(frozen=True, slots=True)
class PoolPatch:
    """What is to change of a pool; what is None stays, and an empty GPU model takes the model away."""

    name: str | None = None
    gpu_model: str | None = None
    sharing: str | None = None
    agent: str | None = None
    policy: Mapping[str, Any] | None = None


async def update_pool(context: Context, pool_id: str, patch: PoolPatch) -> Row:
    """Change a pool; its nodes are planned anew when what divides them changes.

    Raises NotFound, InvalidInput, or Conflict when the name is taken.
    """
    tenant_id = context.require(Permission.OPERATE)
    given_text("name", patch.name)
    given_text("gpuModel", patch.gpu_model or None)
    if patch.policy is not None:
        read_policy(patch.policy)
    async with context.transaction() as tx:
        was = await store.pool_facts(tx, tenant_id, PoolId(pool_id.replace("\0", "")))
        if was is None:
            raise NotFound(f"no pool {pool_id!r}")
        facts = PoolFacts(
            name=patch.name or was.name,
            gpu_model=was.gpu_model if patch.gpu_model is None else patch.gpu_model or None,
            sharing=patch.sharing or was.sharing,
            agent=patch.agent or was.agent,
            policy=was.policy if patch.policy is None else patch.policy,
        )
        row = await store.update_pool(tx, tenant_id, PoolId(pool_id), facts)
        if row is None:
            raise Conflict(f"name: a pool {facts.name!r} exists already")
        if facts != was:
            nodes = await store.nodes_of_pool(tx, tenant_id, PoolId(pool_id))
            await tell_changed(tx, [(tenant_id, node_id) for node_id in nodes], ["pool"])
        if (facts.sharing, facts.policy) != (was.sharing, was.policy):
            await store.replan_pool(tx, tenant_id, PoolId(pool_id))
            context.services.database.inventory_pending.set()
    return row


async def assign_pool(context: Context, node_id: str, pool_id: str | None) -> One:
    """Put a node into a pool and its site, or out of both; raises NotFound."""
    tenant_id = context.require(Permission.OPERATE)
    if pool_id is not None:
        await reading.pool(context, pool_id).load(context)
    await reading.node(context, node_id).load(context)
    async with context.transaction() as tx:
        before = await node_states(tx, [NodeId(node_id)])
        if not await store.assign_pool(tx, tenant_id, NodeId(node_id), PoolId(pool_id) if pool_id else None):
            raise NotFound(f"no node {node_id!r}")
        await tell_changes(tx, before, [(tenant_id, NodeId(node_id))])
    context.services.database.inventory_pending.set()
    return reading.node(context, node_id)


async def set_trust(context: Context, node_id: str, trust: Trust) -> One:
    """Say whose word a node's reports are; raises NotFound."""
    tenant_id = context.require(Permission.OPERATE)
    await reading.node(context, node_id).load(context)
    async with context.transaction() as tx:
        before = await node_states(tx, [NodeId(node_id)])
        await store.set_trust(tx, tenant_id, NodeId(node_id), trust)
        await tell_changes(tx, before, [(tenant_id, NodeId(node_id))])
    context.services.database.inventory_pending.set()
    context.services.database.acceptance_due.set()
    return reading.node(context, node_id)


async def end_advisory_inventory(context: Context, node_id: str) -> One:
    """Take the next report of a node for real; raises NotFound, or Conflict when there is nothing to end."""
    tenant_id = context.require(Permission.OPERATE)
    await reading.node(context, node_id).load(context)
    async with context.transaction() as tx:
        before = await node_states(tx, [NodeId(node_id)])
        ended = await store.end_advisory(tx, tenant_id, NodeId(node_id))
        await tell_changes(tx, before, [(tenant_id, NodeId(node_id))])
    if not ended:
        raise Conflict("its inventory is not advisory, or a tenant still controls it: setTrust takes control back")
    return reading.node(context, node_id)


async def adopt_node(context: Context, node_id: str) -> One:
    """Have a node pass its pool's checks anew; raises NotFound, or Conflict where it is not to be adopted."""
    tenant_id = context.require(Permission.OPERATE)
    found = reading.node(context, node_id)
    await found.load(context)
    async with context.transaction() as tx:
        node = await lock_adoptable(tx, tenant_id, NodeId(node_id))
        if node is None:
            raise NotFound(f"no node {node_id!r}")
        number = next_attempt(NodeId(node_id), node.state, node.trust, node.newest)
        if number is not None:
            before = await node_states(tx, [NodeId(node_id)])
            await begin_attempt(tx, tenant_id, NodeId(node_id), number, context.services.now())
            await tell_changes(tx, before, [(tenant_id, NodeId(node_id))])
    context.services.database.acceptance_due.set()
    return found


async def set_node_spec(context: Context, node_id: str, units: Sequence[Unit]) -> One:
    """Say what is to run on a node; raises InvalidInput or NotFound."""
    tenant_id = context.require(Permission.OPERATE)
    found = reading.node(context, node_id)
    await found.load(context)
    wanted = read_units(units)
    async with context.transaction() as tx:
        before = await node_states(tx, [NodeId(node_id)])
        if not await set_units(tx, tenant_id, NodeId(node_id), wanted):
            raise NotFound(f"no node {node_id!r}")
        await tell_changes(tx, before, [(tenant_id, NodeId(node_id))])
    return found
