"""Tickets for event streams."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "stream_tickets",
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["token_id"], ["api_tokens.id"], name=op.f("stream_tickets_token_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sha256", name=op.f("stream_tickets_pkey")),
    )
    op.create_index(op.f("stream_tickets_expires_at_idx"), "stream_tickets", ["expires_at"])


def downgrade() -> None:
    """Undo the change."""
    op.drop_table("stream_tickets")
