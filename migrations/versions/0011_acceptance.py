"""Attempts of nodes to pass their pool's checks."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "acceptance_attempts",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
        sa.Column("checks", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state in ('passed', 'failed')) = (finished_at is not null)",
            name=op.f("acceptance_attempts_ended_check"),
        ),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("acceptance_attempts_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("acceptance_attempts_tenant_id_fkey")),
        sa.PrimaryKeyConstraint("node_id", "attempt", name=op.f("acceptance_attempts_pkey")),
    )
    adopting = sa.text("provision_state = 'adopting'")
    op.create_index("nodes_adopting_idx", "nodes", ["id"], postgresql_where=adopting)
    # A node that joined without checks to pass is at its first generation.
    op.execute("update nodes set generation = 1 where generation = 0 and provision_state = 'adopted'")


def downgrade() -> None:
    """Undo the change."""
    op.drop_index("nodes_adopting_idx", table_name="nodes")
    op.drop_table("acceptance_attempts")
