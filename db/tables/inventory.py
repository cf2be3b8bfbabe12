"""Inventory: what is reported, what is applied, the bytes, and the append-only snapshots."""

import sqlalchemy as sa
from sqlmodel import SQLModel

from db.tables import columns
from db.tables.columns import Moment

PENDING = sa.text(
    "reported is not null and missing = '{}'::text[]"
    " and (applied is distinct from reported or replan) and failed is distinct from reported"
)
"""A row is pending when all it reports is here, was not applied (or is to be planned anew), and did not already fail.

State, not a message.
"""

DUE = sa.text("due_at is not null")
"""Time alone will change what the node's plan says."""

HELD = sa.text("held_by <> '{}'::text[]")
"""The plan of the node's devices waits for bookings to end."""

CONTESTED = sa.text("contested <> '{}'::text[]")
"""The node reports devices that another one has."""


class NodeInventoryRow(SQLModel, table=True):
    """Where a node's inventory stands: each set is a map of section name to SHA-256."""

    __tablename__ = "node_inventory"
    __table_args__ = (
        sa.Index("node_inventory_pending_idx", "reported_at", postgresql_where=PENDING),
        sa.Index("node_inventory_held_idx", "node_id", postgresql_where=HELD),
        sa.Index("node_inventory_contested_idx", "node_id", postgresql_where=CONTESTED),
        sa.Index("node_inventory_due_idx", "due_at", postgresql_where=DUE),
        {"postgresql_with": {"fillfactor": 70}},
    )

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    tenant_id: str = columns.text()
    reported: dict[str, str] | None = columns.jsonb(None, nullable=True)
    reported_at: Moment | None = columns.moment(nullable=True)
    missing: list[str] = columns.texts()
    applied: dict[str, str] | None = columns.jsonb(None, nullable=True)
    applied_digest: str | None = columns.text(nullable=True)
    applied_at: Moment | None = columns.moment(nullable=True)
    snapshot_id: str | None = columns.text(nullable=True)
    replan: bool = columns.flag()
    # Bookings that bend the plan: when one of them ends, the node is planned anew.
    held_by: list[str] = columns.texts()
    # Devices of another node that it reports: when one of them is let go of, the node is planned anew.
    contested: list[str] = columns.texts()
    # When it is planned anew though nothing was reported.
    due_at: Moment | None = columns.moment(nullable=True)
    # The version of the table of GPU names by which the set was planned.
    gpu_models_version: int = columns.number(0)
    failed: dict[str, str] | None = columns.jsonb(None, nullable=True)
    failed_at: Moment | None = columns.moment(nullable=True)
    error: str | None = columns.text(nullable=True)


class SectionRow(SQLModel, table=True):
    """A section's bytes as received, content-addressed per node, and the document decoded from them."""

    __tablename__ = "inventory_sections"

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    name: str = columns.text_key()
    sha256: str = columns.text_key()
    tenant_id: str = columns.text()
    content: bytes
    document: dict[str, object] = columns.jsonb(None)
    received_at: Moment = columns.moment(now=True)


class SnapshotRow(SQLModel, table=True):
    """An applied set of sections; append-only, its sections referenced by hash."""

    __tablename__ = "inventory_snapshots"
    __table_args__ = (
        sa.Index("inventory_snapshots_history_idx", "node_id", "id"),
        sa.Index("inventory_snapshots_as_of_idx", "node_id", "received_at", "id"),
        sa.Index("inventory_snapshots_digest_idx", "node_id", "digest"),
        sa.Index("inventory_snapshots_interval_idx", "tenant_id", "received_at", "node_id"),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    digest: str = columns.text()
    sections: dict[str, str] = columns.jsonb(None)
    trust: str = columns.text("platform")
    received_at: Moment = columns.moment()
