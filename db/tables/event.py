"""The outbox that commits with a change, and the event log that gives each event its place."""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from db.tables import columns
from db.tables.columns import Moment

_TRANSACTION = sa.text("pg_current_xact_id()::text::bigint")


class OutboxRow(SQLModel, table=True):
    """An event committed with its change, not yet placed in the log."""

    __tablename__ = "outbox"

    sequence: int = columns.big_key(identity=True)
    id: str = columns.text()
    tenant_id: str = columns.text()
    node_id: str | None = columns.text(nullable=True)
    type: str = columns.text()
    payload: dict[str, object] = columns.jsonb()
    at: Moment = columns.moment(now=True)
    # Says whether a query's snapshot already saw the change (see domain.feed).
    transaction: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": _TRANSACTION})


class EventRow(SQLModel, table=True):
    """An event with its gapless position; the table is in partitions, each a range of positions."""

    __tablename__ = "events"
    __table_args__ = (
        sa.Index("events_id_idx", "id"),
        sa.Index("events_node_idx", "node_id", "position"),
        sa.Index("events_tenant_idx", "tenant_id", "position"),
        {"postgresql_partition_by": "range (position)"},
    )

    position: int = columns.big_key()
    id: str = columns.text()
    tenant_id: str = columns.text()
    node_id: str | None = columns.text(nullable=True)
    type: str = columns.text()
    payload: dict[str, object] = columns.jsonb()
    at: Moment = columns.moment()
    transaction: int = Field(sa_type=sa.BigInteger)


class FeedHeadRow(SQLModel, table=True):
    """The one row that says which positions the log holds: after `floor`, up to `position`.

    There are partitions for positions up to `room`.
    """

    __tablename__ = "feed_head"
    __table_args__ = (sa.CheckConstraint("singleton", name="single_row"),)

    singleton: bool = Field(primary_key=True, sa_column_kwargs={"server_default": sa.true()})
    position: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": "0"})
    floor: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": "0"})
    room: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": "0"})
