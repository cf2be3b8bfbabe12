"""What compiled reads rest on: labels by their source, numbers that JSON has, and the refusal of an absent value."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_SOURCES = ("agent_labels", "operator_labels", "inventory_labels", "system_labels")


def upgrade() -> None:
    """Apply the change."""
    op.drop_index("nodes_labels_idx", table_name="nodes")
    op.drop_column("nodes", "labels")
    for source in _SOURCES:
        op.add_column(
            "nodes", sa.Column(source, postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False)
        )
    effective = sa.Computed(
        "(((agent_labels || operator_labels) || inventory_labels) || system_labels)", persisted=True
    )
    op.add_column("nodes", sa.Column("labels", postgresql.JSONB(), effective, nullable=False))
    op.create_index("nodes_labels_idx", "nodes", ["labels"], postgresql_using="gin")
    op.create_check_constraint(
        op.f("devices_vram_finite_check"), "devices", "vram_gib < 'Infinity'::double precision"
    )
    # A statement that builds JSON must not put a null where the schema says there is none: it stops here instead, and
    # the ordinary execution tells the field and its path.
    op.execute(
        """
        create function absent_value() returns text language plpgsql stable as $$
        begin
            raise exception 'a value that the schema says is always there is absent' using errcode = 'FG001';
        end $$
        """
    )


def downgrade() -> None:
    """Undo the change."""
    op.execute("drop function absent_value()")
    op.drop_constraint(op.f("devices_vram_finite_check"), "devices")
    op.drop_index("nodes_labels_idx", table_name="nodes")
    for column in ("labels", *_SOURCES):
        op.drop_column("nodes", column)
    op.add_column(
        "nodes", sa.Column("labels", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False)
    )
    op.create_index(
        "nodes_labels_idx",
        "nodes",
        ["labels"],
        postgresql_using="gin",
        postgresql_ops={"labels": "jsonb_path_ops"},
    )
