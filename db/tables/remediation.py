"""Runs of remediation."""

import sqlalchemy as sa
from sqlmodel import SQLModel

from db.tables import columns
from db.tables.columns import Moment


class RemediationRunRow(SQLModel, table=True):
    """A run of remediation on a node. Its newest ones are kept: attempts are counted by them.

    `faults` says for which it was begun, each by its condition and device; without a command nothing had to be done.
    """

    __tablename__ = "remediation_runs"
    __table_args__ = (
        # However many decide at once, a node is taken out once.
        sa.Index("remediation_runs_open_idx", "node_id", unique=True, postgresql_where=sa.text("finished_at IS NULL")),
        sa.Index("remediation_runs_page_idx", "node_id", "id"),
        # A command that is forgotten looks for its run.
        sa.Index("remediation_runs_command_id_idx", "command_id"),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    node_id: str = columns.reference("nodes.id", on_delete="CASCADE")
    remedy: str = columns.text()
    device_id: str | None = columns.text(nullable=True)
    faults: list[dict[str, object]] = columns.jsonb(None)
    boot_id: str | None = columns.text(nullable=True)
    attempt: int
    state: str = columns.text()
    command_id: str | None = columns.reference("commands.id", nullable=True, on_delete="CASCADE")
    reason: str | None = columns.text(nullable=True)
    started_at: Moment = columns.moment()
    finished_at: Moment | None = columns.moment(nullable=True)
    # When its node was left to an operator because of it; attempts are counted from there.
    escalated_at: Moment | None = columns.moment(nullable=True)
