"""Allocations, and the bookings of atoms that they are made of."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment

ENDS = "COALESCE(upper(during), 'infinity'::timestamp with time zone)"
"""When what is held is free again: indexed, so that what has ended costs nothing; written as PostgreSQL prints it."""


class AllocationRow(SQLModel, table=True):
    """What was claimed on one node by one shard; it ends with the upper bound of `during`, and is kept.

    `request` is what was asked for: the same again is answered with the same allocation.
    """

    __tablename__ = "allocations"
    __table_args__ = (
        sa.Index("allocations_node_idx", "node_id", sa.literal_column(ENDS)),
        sa.Index("allocations_page_idx", "tenant_id", "id"),
        sa.Index("allocations_shard_idx", "tenant_id", "shard_id"),
        sa.Index("allocations_replica_idx", "tenant_id", "replica_id"),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    shard_id: str | None = columns.text(nullable=True)
    replica_id: str | None = columns.text(nullable=True)
    reservation_id: str | None = columns.text(nullable=True)
    memory_gb: int | None
    cpu_cores: int | None
    power_w: float | None = Field(sa_type=sa.Double, nullable=True)
    during: object = Field(sa_type=postgresql.TSTZRANGE)
    request: dict[str, object] = columns.jsonb()
    created_at: Moment = columns.moment(now=True)


class BookingRow(SQLModel, table=True):
    """An atom held for a time. The database's own constraint keeps two from holding it at once."""

    __tablename__ = "bookings"
    __table_args__ = (
        postgresql.ExcludeConstraint(("device_id", "="), ("during", "&&"), using="gist", name="bookings_once_excl"),
        sa.Index("bookings_node_idx", "node_id", sa.literal_column(ENDS)),
        sa.Index("bookings_allocation_idx", "allocation_id"),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    allocation_id: str = columns.reference("allocations.id", on_delete="CASCADE")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    # Not a reference: a device that vanished may still be held.
    device_id: str = columns.text()
    during: object = Field(sa_type=postgresql.TSTZRANGE)
