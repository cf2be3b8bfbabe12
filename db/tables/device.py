"""Devices."""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment


class DeviceRow(SQLModel, table=True):
    """A unit of hardware with a stable id; what differs by class and has no column is in `attributes`."""

    __tablename__ = "devices"
    __table_args__ = (
        sa.Index("devices_node_idx", "node_id", "id"),
        sa.Index("devices_page_idx", "tenant_id", "id"),
        sa.Index("devices_class_idx", "tenant_id", "device_class", "id"),
        # JSON has no NaN and no infinity, and NaN sorts above infinity.
        sa.CheckConstraint("vram_gib < 'Infinity'::double precision", name="vram_finite"),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    device_class: str = columns.text()
    parent_id: str | None = columns.text(nullable=True, index=True)
    bookable: bool = columns.flag()
    healthy: bool = columns.flag(default=True)
    missing: bool = columns.flag()
    partition_pending: bool = columns.flag()
    gpu_product: str | None = columns.text(nullable=True)
    gpu_model: str | None = columns.text(nullable=True)
    vram_gib: float | None = Field(sa_type=sa.Double, nullable=True)
    index: int | None
    pci_bus_id: str | None = columns.text(nullable=True)
    numa_node: int | None
    architecture: str | None = columns.text(nullable=True)
    compute_capability: str | None = columns.text(nullable=True)
    driver_version: str | None = columns.text(nullable=True)
    mig_capable: bool | None
    nvlink_peers: list[str] = columns.texts()
    fabric_cluster: str | None = columns.text(nullable=True)
    fabric_clique: str | None = columns.text(nullable=True)
    attributes: dict[str, object] = columns.jsonb()
    not_known: dict[str, str] = columns.jsonb()
    updated_at: Moment = columns.moment(now=True)


class DeviceHealthRow(SQLModel, table=True):
    """A fault of a device, which ends with it: what was found, by whom, and the condition that it amounts to."""

    __tablename__ = "device_health"

    device_id: str = columns.reference("devices.id", primary_key=True, on_delete="CASCADE")
    source: str = columns.text_key()
    cause: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", index=True, on_delete="CASCADE")
    reason: str = columns.text()
    message: str | None = columns.text(nullable=True)
    # Id and version of the rules by which it was decided, where rules did.
    rule: str | None = columns.text(nullable=True)
    since: Moment = columns.moment()


class DepartureRow(SQLModel, table=True):
    """Hardware that left a node and has turned up nowhere yet, with the snapshot in which it was gone."""

    __tablename__ = "device_departures"
    __table_args__ = (sa.Index("device_departures_at_idx", "at"),)

    device_id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", index=True, on_delete="CASCADE")
    snapshot_id: str = columns.text()
    at: Moment = columns.moment(now=True)
