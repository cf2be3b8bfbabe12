"""The tables, as SQLModel classes: the schema's one declaration, which Alembic's migrations are checked against."""

from sqlmodel import SQLModel

from db.tables.access import ApiTokenRow, TenantRow
from db.tables.device import DeviceRow
from db.tables.event import EventRow, FeedHeadRow, OutboxRow
from db.tables.fleet import PoolRow, SiteRow
from db.tables.inventory import NodeInventoryRow, SectionRow, SnapshotRow
from db.tables.node import ConditionRow, LivenessRow, NodeRow

metadata = SQLModel.metadata

__all__ = [
    "ApiTokenRow",
    "ConditionRow",
    "DeviceRow",
    "EventRow",
    "FeedHeadRow",
    "LivenessRow",
    "NodeInventoryRow",
    "NodeRow",
    "OutboxRow",
    "PoolRow",
    "SectionRow",
    "SiteRow",
    "SnapshotRow",
    "TenantRow",
    "metadata",
]
