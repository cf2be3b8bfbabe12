"""What quarantines rest on: the faults of devices, and when a plan changes by time alone."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "device_health",
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("rule", sa.Text(), nullable=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.id"], name=op.f("device_health_device_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("device_health_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("device_health_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("device_id", "source", "cause", name=op.f("device_health_pkey")),
    )
    op.create_index(op.f("device_health_node_id_idx"), "device_health", ["node_id"])
    op.add_column("node_inventory", sa.Column("due_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index(
        "node_inventory_due_idx", "node_inventory", ["due_at"], postgresql_where=sa.text("due_at is not null")
    )
    # What stands was planned without a look at the health of the GPUs.
    op.execute("update node_inventory set replan = true where applied is not null")


def downgrade() -> None:
    """Undo the change."""
    op.drop_index("node_inventory_due_idx", table_name="node_inventory")
    op.drop_column("node_inventory", "due_at")
    op.drop_table("device_health")
