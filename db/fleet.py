"""Sites and pools."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Select

from db.paging import Order
from db.tables import PoolRow, SiteRow

sites: Final = SiteRow.__table__  # type: ignore[attr-defined]  # SQLModel gives table classes this attribute
pools: Final = PoolRow.__table__  # type: ignore[attr-defined]

SELECT_SITES: Final[Select[Any]] = sa.select(sa.literal_column("'Site'").label("typename"), *sites.c)
SELECT_POOLS: Final[Select[Any]] = sa.select(sa.literal_column("'Pool'").label("typename"), *pools.c)

SITES_BY_ID: Final = Order("id", (sites.c.id,), ("id",))
POOLS_BY_ID: Final = Order("id", (pools.c.id,), ("id",))
