"""Nodes: the wide row that changes rarely, and the narrow one that changes with every heartbeat."""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment

SEARCHED_TEXT = "(((coalesce(hostname, '') || ' ') || coalesce(display_name, '')) || ' ') || identity_key"
"""What a text filter looks in, with the parentheses that PostgreSQL would print: `alembic check` compares texts."""

EFFECTIVE_LABELS = "(((agent_labels || operator_labels) || inventory_labels) || system_labels)"
"""What a node's labels are: the later source covers the earlier (rule 6); written as PostgreSQL would print it."""


class NodeRow(SQLModel, table=True):
    """A machine of the fleet; its state is several independent axes."""

    __tablename__ = "nodes"
    __table_args__ = (
        sa.UniqueConstraint("tenant_id", "identity_key"),
        sa.Index("nodes_page_idx", "tenant_id", "id"),
        sa.Index("nodes_hostname_idx", "tenant_id", sa.literal_column("coalesce(hostname, '')"), "id"),
        sa.Index(
            "nodes_hardware_key_idx",
            "hardware_key",
            unique=True,
            postgresql_where=sa.text("hardware_key_trusted"),
        ),
        sa.Index("nodes_draining_idx", "id", postgresql_where=sa.text("draining")),
        # jsonb_ops, because selectors ask for keys too (measured: docs/performance.md).
        sa.Index("nodes_labels_idx", "labels", postgresql_using="gin"),
        sa.Index(
            "nodes_text_idx",
            sa.literal_column(f"({SEARCHED_TEXT})").label("searched"),
            postgresql_using="gin",
            postgresql_ops={"searched": "gin_trgm_ops"},
        ),
        # What is on its way in is little, however many nodes there are.
        sa.Index("nodes_adopting_idx", "id", postgresql_where=sa.text("provision_state = 'adopting'")),
    )

    id: str = columns.text_key()
    tenant_id: str = columns.reference("tenants.id")
    identity_key: str = columns.text()
    hostname: str | None = columns.text(nullable=True)
    display_name: str | None = columns.text(nullable=True)
    management_address: str | None = columns.text(nullable=True)
    site_id: str | None = columns.reference("sites.id", index=True, nullable=True)
    pool_id: str | None = columns.reference("pools.id", index=True, nullable=True)
    provision_state: str = columns.text("adopting")
    # What keeps work off it by an operator's word: nothing that its agent says changes these.
    maintenance: bool = columns.flag()
    maintenance_reason: str | None = columns.text(nullable=True)
    maintenance_by: str | None = columns.text(nullable=True)
    maintenance_since: Moment | None = columns.moment(nullable=True)
    cordoned: bool = columns.flag()
    draining: bool = columns.flag()
    # Draining, and nothing is held of it.
    drained: bool = columns.flag()
    power: str = columns.text("unknown")
    role: str = columns.text("unassigned")
    trust: str = columns.text("platform")
    generation: int = columns.number(0)
    observed_generation: int = columns.number(0)
    # What an operator wants to run on it, by kind; its every change is a generation.
    units: list[dict[str, object]] = columns.jsonb("[]")
    agent_labels: dict[str, str] = columns.jsonb()
    operator_labels: dict[str, str] = columns.jsonb()
    inventory_labels: dict[str, str] = columns.jsonb()
    system_labels: dict[str, str] = columns.jsonb()
    labels: dict[str, str] = columns.computed_jsonb(EFFECTIVE_LABELS)
    no_schedule_reasons: list[str] = columns.texts()
    hardware_key: str | None = columns.text(nullable=True)
    hardware_key_trusted: bool = columns.flag()
    # Why the key is not trusted until an operator decides.
    hardware_conflict: str | None = columns.text(nullable=True)
    hardware_evidence: list[dict[str, object]] = columns.jsonb("[]")
    fingerprint: str | None = columns.text(nullable=True)
    # How many GPUs it had when it was last accepted; what a pool's policy expects comes before.
    accepted_gpus: int | None
    agent_version: str | None = columns.text(nullable=True)
    protocol: str | None = columns.text(nullable=True)
    features: list[str] = columns.texts()
    boot_id: str | None = columns.text(nullable=True)
    created_at: Moment = columns.moment(now=True)


class LivenessRow(SQLModel, table=True):
    """When a node was last heard of: half-empty pages, so that updates stay on their page (HOT)."""

    __tablename__ = "node_liveness"
    __table_args__ = ({"postgresql_with": {"fillfactor": 50}},)

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    tenant_id: str = columns.text()
    session_id: str | None = columns.text(nullable=True)
    last_seen_at: Moment | None = columns.moment(nullable=True)
    # What its silence is said to be, unreachable or lost, until the next sign of life.
    away: str | None = columns.text(nullable=True)
    # Whether its lease held when that was last told; null when it may have turned and turned back since.
    told_connected: bool | None
    # By how much its clock was ahead of the server's when it last told the time.
    clock_skew_seconds: float | None = Field(sa_type=sa.Double, nullable=True)


class CertificateRow(SQLModel, table=True):
    """How long the newest identity certificate holds that a node told of."""

    __tablename__ = "node_certificates"

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    tenant_id: str = columns.text()
    serial: str = columns.text()
    not_before: Moment = columns.moment()
    not_after: Moment = columns.moment()


class ListeningRow(SQLModel, table=True):
    """The one row that says since when nodes can be heard without a gap, and when somebody last listened."""

    __tablename__ = "listening"
    __table_args__ = (sa.CheckConstraint("singleton", name="single_row"),)

    singleton: bool = Field(primary_key=True, sa_column_kwargs={"server_default": sa.true()})
    since: Moment = columns.moment(now=True)
    at: Moment = columns.moment(now=True)


class ConditionRow(SQLModel, table=True):
    """A typed condition of a node."""

    __tablename__ = "node_conditions"
    __table_args__ = (
        sa.Index("node_conditions_holding_idx", "type", "node_id", postgresql_where=sa.text("status = 'true'")),
    )

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    type: str = columns.text_key()
    tenant_id: str = columns.text()
    status: str = columns.text()
    reason: str | None = columns.text(nullable=True)
    message: str | None = columns.text(nullable=True)
    no_schedule: bool = columns.flag()
    since: Moment = columns.moment()
