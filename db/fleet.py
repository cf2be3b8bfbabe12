"""Sites and pools."""

from dataclasses import dataclass

from db.database import Row, Transaction
from domain.ids import NodeId, PoolId, SiteId, TenantId

_ADD_SITE = """
insert into sites (id, tenant_id, name, iam_region, kind) values ($1, $2, $3, $4, $5)
on conflict (tenant_id, name) do nothing returning 'Site' as typename, *
"""
_ADD_POOL = """
insert into pools (id, tenant_id, site_id, name, pool_class, gpu_model, sharing, agent)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (tenant_id, name) do nothing returning 'Pool' as typename, *
"""
_ASSIGN = """
update nodes n set pool_id = p.id, site_id = p.site_id
from (select $3::text as id, (select site_id from pools where id = $3 and tenant_id = $1) as site_id) p
where n.id = $2 and n.tenant_id = $1 returning n.id
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


async def add_site(tx: Transaction, tenant_id: TenantId, site_id: SiteId, new: NewSite) -> Row | None:
    """Add a site; None when the tenant has one of that name."""
    return await tx.first(_ADD_SITE, site_id, tenant_id, new.name, new.iam_region, new.kind)


async def add_pool(tx: Transaction, tenant_id: TenantId, pool_id: PoolId, new: NewPool) -> Row | None:
    """Add a pool; None when the tenant has one of that name."""
    return await tx.first(
        _ADD_POOL, pool_id, tenant_id, new.site_id, new.name, new.pool_class, new.gpu_model, new.sharing, new.agent
    )


async def assign_pool(tx: Transaction, tenant_id: TenantId, node_id: NodeId, pool_id: PoolId | None) -> bool:
    """Put a node into a pool and its site, or out of both; False when the tenant has no such node."""
    return await tx.value(_ASSIGN, tenant_id, node_id, pool_id) is not None
