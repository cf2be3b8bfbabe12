"""The devices that a node reports and another one has: it is planned anew when one is let go of, not all the time."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "node_inventory",
        sa.Column("contested", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    )
    op.create_index(
        "node_inventory_contested_idx",
        "node_inventory",
        ["node_id"],
        postgresql_where=sa.text("contested <> '{}'::text[]"),
    )
    # Which devices those are, only a plan says.
    op.execute(
        """
        update node_inventory set replan = true where applied is not null and node_id in (
            select node_id from node_conditions where type = 'DuplicateIdentity' and status = 'true'
        )
        """
    )


def downgrade() -> None:
    """Undo the change."""
    op.drop_index("node_inventory_contested_idx", table_name="node_inventory")
    op.drop_column("node_inventory", "contested")
