"""Runs of remediation, and pools that are left alone."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "remediation_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=True),
        sa.Column("faults", postgresql.JSONB(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("command_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("escalated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["command_id"], ["commands.id"], name=op.f("remediation_runs_command_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("remediation_runs_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("remediation_runs_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("remediation_runs_pkey")),
    )
    is_open = sa.text("finished_at IS NULL")
    op.create_index("remediation_runs_open_idx", "remediation_runs", ["node_id"], unique=True, postgresql_where=is_open)
    op.create_index("remediation_runs_page_idx", "remediation_runs", ["node_id", "id"])
    raises = sa.text("condition IS NOT NULL")
    op.create_index("node_faults_raised_idx", "node_faults", ["since"], postgresql_where=raises)
    op.add_column("pools", sa.Column("remediation_paused_since", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("pools", "remediation_paused_since")
    op.drop_index("node_faults_raised_idx", "node_faults")
    op.drop_table("remediation_runs")
