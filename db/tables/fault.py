"""Faults that kernel logs told."""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment


class NodeFaultRow(SQLModel, table=True):
    """A fault of one boot of a node with its verdict; equal ones of a boot are one row with a count."""

    __tablename__ = "node_faults"
    __table_args__ = (
        sa.Index("node_faults_device_idx", "device_id"),
        sa.Index("node_faults_raised_idx", "since", postgresql_where=sa.text("condition IS NOT NULL")),
        # What holds is little, however much was.
        sa.Index(
            "node_faults_holding_idx", "node_id", postgresql_where=sa.text("condition IS NOT NULL AND ended_at IS NULL")
        ),
    )

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    # Empty where the node does not tell its boot.
    boot_id: str = columns.text_key()
    key: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    kind: str = columns.text()
    code: int
    address: str = columns.text()
    pci: str | None = columns.text(nullable=True)
    device_id: str | None = columns.text(nullable=True)
    mig: str | None = columns.text(nullable=True)
    # Of its newest record in the log: what is not newer than the one it ended with is history.
    sequence: int = Field(sa_type=sa.BigInteger)
    count: int = Field(sa_type=sa.BigInteger)
    message: str = columns.text()
    policy: str = columns.text()
    scope: str = columns.text()
    rule: str = columns.text()
    cause: str = columns.text()
    caused_by: str | None = columns.text(nullable=True)
    meaning: str = columns.text()
    recommended_action: str | None = columns.text(nullable=True)
    note: str | None = columns.text(nullable=True)
    condition: str | None = columns.text(nullable=True)
    remedy: str | None = columns.text(nullable=True)
    since: Moment = columns.moment()
    last_at: Moment = columns.moment()
    ended_at: Moment | None = columns.moment(nullable=True)
    end: str | None = columns.text(nullable=True)
