"""What a silence and a clock are said to be, since when anybody listened, and what a node is to run."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("node_liveness", sa.Column("away", sa.Text(), nullable=True))
    op.add_column("node_liveness", sa.Column("clock_skew_seconds", sa.Double(), nullable=True))
    op.create_table(
        "listening",
        sa.Column("singleton", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.CheckConstraint("singleton", name=op.f("listening_single_row_check")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("listening_pkey")),
    )
    op.execute("insert into listening default values")
    op.add_column(
        "nodes", sa.Column("units", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False)
    )
    op.create_index(
        "node_conditions_holding_idx",
        "node_conditions",
        ["type", "node_id"],
        postgresql_where=sa.text("status = 'true'"),
    )


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("nodes", "units")
    op.drop_index("node_conditions_holding_idx", table_name="node_conditions")
    op.drop_table("listening")
    op.drop_column("node_liveness", "clock_skew_seconds")
    op.drop_column("node_liveness", "away")
