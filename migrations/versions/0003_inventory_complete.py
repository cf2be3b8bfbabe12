"""What a complete inventory rests on: hardware keys, bookings that cannot overlap, and cached images."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("nodes", sa.Column("hardware_key", sa.Text(), nullable=True))
    op.add_column(
        "nodes", sa.Column("hardware_key_trusted", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.add_column("nodes", sa.Column("hardware_conflict", sa.Text(), nullable=True))
    op.add_column(
        "nodes",
        sa.Column("hardware_evidence", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
    )
    op.add_column("nodes", sa.Column("fingerprint", sa.Text(), nullable=True))
    op.add_column("nodes", sa.Column("accepted_gpus", sa.Integer(), nullable=True))
    op.create_index(
        "nodes_hardware_key_idx",
        "nodes",
        ["hardware_key"],
        unique=True,
        postgresql_where=sa.text("hardware_key_trusted"),
    )
    op.add_column("node_inventory", sa.Column("gpu_models_version", sa.Integer(), server_default="0", nullable=False))
    op.add_column(
        "node_inventory",
        sa.Column("held_by", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    )
    op.create_index(
        "node_inventory_held_idx",
        "node_inventory",
        ["node_id"],
        postgresql_where=sa.text("held_by <> '{}'::text[]"),
    )
    op.create_index("inventory_snapshots_interval_idx", "inventory_snapshots", ["tenant_id", "received_at", "node_id"])
    op.create_table(
        "node_image_cache",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("node_image_cache_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("node_id", "reference", "digest", name=op.f("node_image_cache_pkey")),
    )
    op.create_index("node_image_cache_reference_idx", "node_image_cache", ["tenant_id", "reference", "node_id"])
    op.create_index("node_image_cache_digest_idx", "node_image_cache", ["tenant_id", "digest", "node_id"])
    op.create_table(
        "allocations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("shard_id", sa.Text(), nullable=True),
        sa.Column("replica_id", sa.Text(), nullable=True),
        sa.Column("reservation_id", sa.Text(), nullable=True),
        sa.Column("memory_gb", sa.Integer(), nullable=True),
        sa.Column("cpu_cores", sa.Integer(), nullable=True),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.Column("during", postgresql.TSTZRANGE(), nullable=False),
        sa.Column("request", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("allocations_node_id_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("allocations_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("allocations_pkey")),
    )
    ends = sa.text("coalesce(upper(during), 'infinity'::timestamptz)")
    op.create_index("allocations_node_idx", "allocations", ["node_id", ends])
    op.create_index("allocations_page_idx", "allocations", ["tenant_id", "id"])
    op.create_index("allocations_shard_idx", "allocations", ["tenant_id", "shard_id"])
    op.create_index("allocations_replica_idx", "allocations", ["tenant_id", "replica_id"])
    op.create_table(
        "bookings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("allocation_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("during", postgresql.TSTZRANGE(), nullable=False),
        sa.ForeignKeyConstraint(
            ["allocation_id"], ["allocations.id"], name=op.f("bookings_allocation_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("bookings_node_id_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("bookings_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("bookings_pkey")),
        postgresql.ExcludeConstraint(("device_id", "="), ("during", "&&"), using="gist", name="bookings_once_excl"),
    )
    op.create_index("bookings_node_idx", "bookings", ["node_id", ends])
    op.create_index("bookings_allocation_idx", "bookings", ["allocation_id"])
    op.create_table(
        "device_departures",
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("device_departures_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("device_departures_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("device_id", name=op.f("device_departures_pkey")),
    )
    op.create_index("device_departures_at_idx", "device_departures", ["at"])
    op.create_index(op.f("device_departures_node_id_idx"), "device_departures", ["node_id"])


def downgrade() -> None:
    """Undo the change."""
    for table in ("device_departures", "bookings", "allocations", "node_image_cache"):
        op.drop_table(table)
    op.drop_index("inventory_snapshots_interval_idx", table_name="inventory_snapshots")
    op.drop_index("node_inventory_held_idx", table_name="node_inventory")
    op.drop_column("node_inventory", "held_by")
    op.drop_column("node_inventory", "gpu_models_version")
    op.drop_index("nodes_hardware_key_idx", table_name="nodes")
    for column in (
        "accepted_gpus",
        "fingerprint",
        "hardware_evidence",
        "hardware_conflict",
        "hardware_key_trusted",
        "hardware_key",
    ):
        op.drop_column("nodes", column)
