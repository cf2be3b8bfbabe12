"""Sites and pools as they are read."""

from typing import Final

from db.declared.capacity import CAPACITY_OF_POOL
from db.paging import Order
from db.tables import NodeRow, PoolRow, SiteRow, table_of
from db.views.filters import one_of
from db.views.view import Relation, View, declare

_nodes: Final = table_of(NodeRow)
_sites: Final = table_of(SiteRow)
_pools: Final = table_of(PoolRow)

SITES_BY_ID: Final = Order("id", (_sites.c.id,))
POOLS_BY_ID: Final = Order("id", (_pools.c.id,))

SITES: Final = declare(
    SiteRow,
    View(
        "Site",
        _sites,
        key=_sites.c.id,
        tenant=_sites.c.tenant_id,
        relations={"nodes": Relation(NodeRow, ((_nodes.c.site_id, _sites.c.id),), paged=True)},
        filters={"id": one_of(_sites.c.id)},
    ),
)
POOLS: Final = declare(
    PoolRow,
    View(
        "Pool",
        _pools,
        key=_pools.c.id,
        tenant=_pools.c.tenant_id,
        relations={
            "site": Relation(SiteRow, ((_sites.c.id, _pools.c.site_id),)),
            "nodes": Relation(NodeRow, ((_nodes.c.pool_id, _pools.c.id),), paged=True),
            "capacity": CAPACITY_OF_POOL,
        },
        filters={"id": one_of(_pools.c.id)},
    ),
)
