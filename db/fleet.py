"""Sites and pools."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Select

from db.tables import PoolRow, SiteRow

sites: Final = SiteRow.__table__  # type: ignore[attr-defined]  # SQLModel gives table classes this attribute
pools: Final = PoolRow.__table__  # type: ignore[attr-defined]

SELECT_SITES: Final[Select[Any]] = sa.select(*sites.c)
SELECT_POOLS: Final[Select[Any]] = sa.select(*pools.c)
