"""What refuses, in the statement that reads the log, a cursor that the log does not reach any more."""

from collections.abc import Sequence

from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.execute(
        """
        create function log_follows(place bigint) returns boolean language plpgsql stable as $$
        declare
            head feed_head;
        begin
            select * into strict head from feed_head;
            if place between head.floor and head.position then
                return true;
            end if;
            raise exception 'the log does not hold what follows a cursor' using
                errcode = 'FG002', detail = concat_ws(' ', place, head.floor, head.position);
        end $$
        """
    )


def downgrade() -> None:
    """Undo the change."""
    op.execute("drop function log_follows(bigint)")
