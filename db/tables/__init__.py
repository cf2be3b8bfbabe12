"""The tables, as SQLModel classes: the schema's one declaration, which Alembic's migrations are checked against."""

from typing import cast

from sqlalchemy import Table
from sqlmodel import SQLModel

from db.tables.acceptance import AcceptanceRow
from db.tables.access import ApiTokenRow, StreamTicketRow, TenantRow
from db.tables.booking import AllocationRow, BookingRow
from db.tables.command import CommandRow
from db.tables.device import DepartureRow, DeviceHealthRow, DeviceRow
from db.tables.event import EventRow, FeedHeadRow, OutboxRow
from db.tables.fault import NodeFaultRow
from db.tables.fleet import PoolRow, SiteRow
from db.tables.image import CachedImageRow
from db.tables.inventory import NodeInventoryRow, SectionRow, SnapshotRow
from db.tables.node import CertificateRow, ConditionRow, ListeningRow, LivenessRow, NodeRow
from db.tables.remediation import RemediationRunRow

metadata = SQLModel.metadata


def table_of(row: type[SQLModel]) -> Table:
    """Return a row class's table, in whose columns statements are written."""
    return cast("Table", row.__table__)  # type: ignore[attr-defined]  # SQLModel gives table classes this attribute


__all__ = [
    "AcceptanceRow",
    "AllocationRow",
    "ApiTokenRow",
    "BookingRow",
    "CachedImageRow",
    "CertificateRow",
    "CommandRow",
    "ConditionRow",
    "DepartureRow",
    "DeviceHealthRow",
    "DeviceRow",
    "EventRow",
    "FeedHeadRow",
    "ListeningRow",
    "LivenessRow",
    "NodeFaultRow",
    "NodeInventoryRow",
    "NodeRow",
    "OutboxRow",
    "PoolRow",
    "RemediationRunRow",
    "SectionRow",
    "SiteRow",
    "SnapshotRow",
    "StreamTicketRow",
    "TenantRow",
    "metadata",
    "table_of",
]
