"""Sites and pools."""

import sqlalchemy as sa
from sqlmodel import SQLModel

from db.tables import columns
from db.tables.columns import Moment


class SiteRow(SQLModel, table=True):
    """A boot and failure domain."""

    __tablename__ = "sites"
    __table_args__ = (sa.UniqueConstraint("tenant_id", "name"),)

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    name: str = columns.text()
    iam_region: str = columns.text()
    kind: str = columns.text("shared")
    created_at: Moment = columns.moment(now=True)


class PoolRow(SQLModel, table=True):
    """A scheduling and policy domain in one site."""

    __tablename__ = "pools"
    __table_args__ = (sa.UniqueConstraint("tenant_id", "name"),)

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    site_id: str = columns.reference("sites.id", index=True)
    name: str = columns.text()
    pool_class: str = columns.text("metal-host")
    gpu_model: str | None = columns.text(nullable=True)
    sharing: str = columns.text("exclusive")
    agent: str = columns.text("bcd")
    policy: dict[str, object] = columns.jsonb()
    # Since when too many of its nodes turn unhealthy for any to be taken out.
    remediation_paused_since: Moment | None = columns.moment(nullable=True)
    created_at: Moment = columns.moment(now=True)
