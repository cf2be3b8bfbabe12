"""Whether a node's lease held when that was last told: at first what is so, as nobody was told anything else."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    told: sa.Column[bool | None] = sa.Column("told_connected", sa.Boolean(), nullable=True)
    op.add_column("node_liveness", told)
    op.execute(
        "update node_liveness set told_connected = coalesce(last_seen_at > now() - interval '40 seconds', false)"
    )


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("node_liveness", "told_connected")
