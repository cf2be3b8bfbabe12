"""Attempts at acceptance."""

import sqlalchemy as sa
from sqlmodel import SQLModel

from db.tables import columns
from db.tables.columns import Moment


class AcceptanceRow(SQLModel, table=True):
    """An attempt of a node to pass its pool's checks; the newest is kept, and the next one has the next number.

    `checks` are fixed as it starts: each with its kind, its command, and what became of it.
    """

    __tablename__ = "acceptance_attempts"
    __table_args__ = (sa.CheckConstraint("(state in ('passed', 'failed')) = (finished_at is not null)", name="ended"),)

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    attempt: int = columns.number_key()
    tenant_id: str = columns.reference("tenants.id")
    state: str = columns.text("waiting")
    checks: list[dict[str, object]] = columns.jsonb("[]")
    reason: str | None = columns.text(nullable=True)
    created_at: Moment = columns.moment(now=True)
    started_at: Moment | None = columns.moment(nullable=True)
    finished_at: Moment | None = columns.moment(nullable=True)
