"""Sites and pools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from db.connections import Row
from db.database import Transaction
from domain.ids import NodeId, PoolId, SiteId, TenantId
from domain.node import Trust

_ADD_SITE = """
insert into sites (id, tenant_id, name, iam_region, kind) values ($1, $2, $3, $4, $5)
on conflict (tenant_id, name) do nothing returning 'Site' as typename, *
"""
_ADD_POOL = """
insert into pools (id, tenant_id, site_id, name, pool_class, gpu_model, sharing, agent, policy)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (tenant_id, name) do nothing returning 'Pool' as typename, *
"""
_POOL = "select name, gpu_model, sharing, agent, policy from pools where tenant_id = $1 and id = $2 for update"
_UPDATE_POOL = """
update pools p set name = $3, gpu_model = $4, sharing = $5, agent = $6, policy = $7
where p.tenant_id = $1 and p.id = $2
    and not exists (select from pools o where o.tenant_id = $1 and o.name = $3 and o.id <> $2)
returning 'Pool' as typename, *
"""
_REPLAN_POOL = """
update node_inventory i set replan = true from nodes n
where n.pool_id = $1 and n.tenant_id = $2 and i.node_id = n.id and not i.replan
"""
# What came under a tenant's control and was not noted yet is nobody's word any more; what changed of the pool meanwhile
# is planned from the platform's last set.
# Which boot a node is in that a tenant controlled is not known until its next hello.
_SET_TRUST = """
with was as (
    select id, trust from nodes where tenant_id = $1 and id = $2 for no key update
), now_is as (
    update nodes n set trust = $3, boot_id = case when was.trust <> $4 or $3 = $4 then n.boot_id end
    from was where n.id = was.id
), taken_back as (
    update node_inventory i set reported = applied, missing = '{}', replan = applied is not null
    from was where i.node_id = was.id and was.trust = $4 and $3 <> $4
)
select id from was
"""
# What a tenant reported is forgotten, not applied: the next report is the first.
_END_ADVISORY = """
update node_inventory i set reported = null, reported_at = null, missing = '{}', applied = null, applied_digest = null,
    failed = null, failed_at = null, error = null, replan = false
from nodes n
where n.tenant_id = $1 and n.id = $2 and n.trust <> $3 and i.node_id = n.id and i.applied_digest like 'advisory:%'
returning i.node_id
"""
_ASSIGN = """
with assigned as (
    update nodes n set pool_id = p.id, site_id = p.site_id
    from (select $3::text as id, (select site_id from pools where id = $3 and tenant_id = $1) as site_id) p
    where n.id = $2 and n.tenant_id = $1 returning n.id
), replanned as (
    update node_inventory i set replan = true from assigned a where i.node_id = a.id and not i.replan
)
select id from assigned
"""
_OF_NODES = """
select n.id as node_id, p.pool_class, p.sharing, p.policy from nodes n join pools p on p.id = n.pool_id
where n.id = any ($1)
"""


@dataclass(frozen=True, slots=True)
class NewSite:
    """A site to add."""

    name: str
    iam_region: str
    kind: str


@dataclass(frozen=True, slots=True)
class NewPool:
    """A pool to add."""

    name: str
    site_id: SiteId
    pool_class: str
    gpu_model: str | None
    sharing: str
    agent: str
    policy: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What may be changed of a pool."""

    name: str
    gpu_model: str | None
    sharing: str
    agent: str
    policy: Mapping[str, Any]


async def add_site(tx: Transaction, tenant_id: TenantId, site_id: SiteId, new: NewSite) -> Row | None:
    """Add a site; None when the tenant has one of that name."""
    return await tx.first(_ADD_SITE, site_id, tenant_id, new.name, new.iam_region, new.kind)


async def add_pool(tx: Transaction, tenant_id: TenantId, pool_id: PoolId, new: NewPool) -> Row | None:
    """Add a pool; None when the tenant has one of that name."""
    return await tx.first(
        _ADD_POOL,
        pool_id,
        tenant_id,
        new.site_id,
        new.name,
        new.pool_class,
        new.gpu_model,
        new.sharing,
        new.agent,
        dict(new.policy),
    )


async def pool_facts(tx: Transaction, tenant_id: TenantId, pool_id: PoolId) -> PoolFacts | None:
    """Return what may be changed of a pool, and hold the pool until the transaction ends."""
    row = await tx.first(_POOL, tenant_id, pool_id)
    return None if row is None else PoolFacts(row.name, row.gpu_model, row.sharing, row.agent, row.policy)


async def update_pool(tx: Transaction, tenant_id: TenantId, pool_id: PoolId, facts: PoolFacts) -> Row | None:
    """Write a pool's facts; None when the tenant has another pool of that name."""
    given = (facts.name, facts.gpu_model, facts.sharing, facts.agent, dict(facts.policy))
    return await tx.first(_UPDATE_POOL, tenant_id, pool_id, *given)


async def nodes_of_pool(tx: Transaction, tenant_id: TenantId, pool_id: PoolId) -> list[NodeId]:
    """Return the nodes that are in a pool."""
    rows = await tx.fetch("select id from nodes where tenant_id = $1 and pool_id = $2 order by id", tenant_id, pool_id)
    return [NodeId(row.id) for row in rows]


async def replan_pool(tx: Transaction, tenant_id: TenantId, pool_id: PoolId) -> None:
    """Have the pool's nodes planned anew: what they divide into has changed."""
    await tx.execute(_REPLAN_POOL, pool_id, tenant_id)


async def assign_pool(tx: Transaction, tenant_id: TenantId, node_id: NodeId, pool_id: PoolId | None) -> bool:
    """Put a node into a pool and its site, or out of both, and have it planned anew; False without such a node."""
    return await tx.value(_ASSIGN, tenant_id, node_id, pool_id) is not None


async def pools_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return (node_id, pool_class, sharing, policy) of those nodes that are in a pool, of whatever tenant."""
    return await tx.fetch(_OF_NODES, list(node_ids))


async def set_trust(tx: Transaction, tenant_id: TenantId, node_id: NodeId, trust: Trust) -> bool:
    """Say whose word a node's reports are, and have it planned anew when it is a tenant's no more.

    False when the tenant has no such node.
    """
    return await tx.value(_SET_TRUST, tenant_id, node_id, trust.value, Trust.TENANT_CONTROLLED.value) is not None


async def end_advisory(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> bool:
    """Forget what was reported under a tenant's control; False when nothing was, or the tenant still has control."""
    return await tx.value(_END_ADVISORY, tenant_id, node_id, Trust.TENANT_CONTROLLED.value) is not None
