"""Why nodes are in maintenance, whether those that are emptied are empty, and how long their certificates hold."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("nodes", sa.Column("maintenance_reason", sa.Text(), nullable=True))
    op.add_column("nodes", sa.Column("maintenance_by", sa.Text(), nullable=True))
    op.add_column("nodes", sa.Column("maintenance_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("nodes", sa.Column("drained", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_index("nodes_draining_idx", "nodes", ["id"], postgresql_where=sa.text("draining"))

    op.create_table(
        "node_certificates",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("serial", sa.Text(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_after", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("node_certificates_node_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("node_id", name=op.f("node_certificates_pkey")),
    )


def downgrade() -> None:
    """Undo the change."""
    op.drop_table("node_certificates")
    op.drop_index("nodes_draining_idx", table_name="nodes")
    for column in ("drained", "maintenance_since", "maintenance_by", "maintenance_reason"):
        op.drop_column("nodes", column)
