"""Whether a node's lease held when that was last told."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    told: sa.Column[bool] = sa.Column("told_connected", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("node_liveness", told)


def downgrade() -> None:
    """Undo the change."""
    op.drop_column("node_liveness", "told_connected")
