"""Commands."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment

_OPEN = sa.text("finished_at IS NULL")


class CommandRow(SQLModel, table=True):
    """What a node is told to do once. Those of one node are counted by `sequence`; the newest is kept.

    `request` is what was asked for: the same again, by its key, is answered with the same command. `expires_at` is
    `not_after`, and while it runs the time by which its result is waited for.
    """

    __tablename__ = "commands"
    __table_args__ = (
        sa.UniqueConstraint("tenant_id", "idempotency_key"),
        sa.UniqueConstraint("node_id", "sequence"),
        sa.Index("commands_page_idx", "node_id", "id"),
        # What is not finished is little, however much was.
        sa.Index("commands_open_idx", "node_id", "sequence", postgresql_where=_OPEN),
        sa.Index("commands_expiry_idx", "expires_at", postgresql_where=_OPEN),
        sa.Index("commands_finished_idx", "finished_at", postgresql_where=sa.text("finished_at IS NOT NULL")),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    sequence: int
    idempotency_key: str = columns.text()
    kind: str = columns.text()
    payload: dict[str, object] = columns.jsonb()
    request: dict[str, object] = columns.jsonb()
    state: str = columns.text("pending")
    not_before: Moment | None = columns.moment(nullable=True)
    not_after: Moment = columns.moment()
    expires_at: Moment = columns.moment()
    issued_by: str = columns.text()
    request_id: str = columns.text()
    created_at: Moment = columns.moment(now=True)
    started_at: Moment | None = columns.moment(nullable=True)
    # Made by the agent that runs it.
    run_id: str | None = columns.text(nullable=True)
    finished_at: Moment | None = columns.moment(nullable=True)
    reason: str | None = columns.text(nullable=True)
    message: str | None = columns.text(nullable=True)
    result: object = Field(sa_type=postgresql.JSONB, nullable=True)
