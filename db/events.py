"""The outbox, the relay's one statement, and the event log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from db.connections import Row
from db.database import Reader, Transaction
from db.declared.events import VARIANT, log, once_followed, told
from db.identifiers import new_id
from db.views.plan import Compiled, compile_statement
from domain.cursor import FeedCursor
from domain.event_partitions import PARTITION_MIN, partition_size
from domain.feed import Wanted, has_seen, refuse_unreachable, replica_cursor
from domain.ids import NodeId, TenantId

RELAY_LOCK: Final = 0x666C_6565_7402
WAITING_MAX: Final = 1000
"""Transactions with waiting events that a replica's cursor looks at."""

_WRITE = """
insert into outbox (id, tenant_id, node_id, type, payload)
select e.id, e.tenant_id, e.node_id, e.type, e.payload
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[])
    with ordinality as e (id, tenant_id, node_id, type, payload, place)
order by e.place
"""
# Committed rows get the next positions in one statement. The row lock on feed_head makes two relays take turns, and
# what one has deleted the other no longer gets from its own delete: no position is given twice, none is skipped. No
# more are placed than there are partitions for.
# The advisory lock spares the others the wait. It stands in the statement, and not before it in a transaction, so that
# a relay whose process is stopped or cut off holds nothing: the server ends a statement by itself.
_PLACE = """
with turn as materialized (
    select pg_try_advisory_xact_lock($2) as mine
), head as materialized (
    select position, room from feed_head where (select mine from turn) for update
), moved as (
    delete from outbox
    where sequence = any (array(
        select sequence from outbox
        order by sequence limit coalesce((select least($1, room - position) from head), 0)
    ))
    returning *
), placed as (
    insert into events (position, id, tenant_id, node_id, type, payload, at, transaction)
    select head.position + row_number() over (order by m.sequence),
        m.id, m.tenant_id, m.node_id, m.type, m.payload, m.at, m.transaction
    from moved m cross join head
), advanced as (
    update feed_head set position = feed_head.position + (select count(*) from moved)
    from head
    where exists (select from moved)
)
select position + count as position, count, room - position - count as room
from head cross join (select count(*) from moved) m
"""
_AFTER: Final = compile_statement(
    sa.select(VARIANT.label("typename"), *log.c)
    .where(log.c.position > sa.bindparam("v0", type_=sa.BigInteger()))
    .order_by(log.c.position)
    .limit(sa.bindparam("v1", type_=sa.BigInteger()))
)


@cache
def _fitting(*, by_tenant: bool, by_type: bool, by_node: bool, by_condition: bool) -> Compiled:
    """Read on behind `v0`, up to `v1`; a text of its own for what is asked, so that one plan finds it by its index."""
    place, reach, limit = (sa.bindparam(name, type_=sa.BigInteger()) for name in ("v0", "v1", "v2"))
    texts = sa.ARRAY(sa.Text())
    asked = (
        (by_tenant, log.c.tenant_id == sa.bindparam("v3", type_=sa.Text())),
        (by_type, log.c.type == sa.any_(sa.bindparam("v4", type_=texts))),
        (by_node, log.c.node_id == sa.any_(sa.bindparam("v5", type_=texts))),
        (by_condition, told("condition") == sa.any_(sa.bindparam("v6", type_=texts))),
    )
    return compile_statement(
        sa.select(VARIANT.label("typename"), *log.c)
        .where(log.c.position > once_followed(place, place), log.c.position <= once_followed(place, reach))
        .where(*(condition for is_asked, condition in asked if is_asked))
        .order_by(log.c.position)
        .limit(limit)
    )


_HEAD = "select position, floor from feed_head"
# Without waiting events every change this snapshot saw has its position already; with some, the cursor must say which.
# On a replica `pg_current_snapshot()` takes transactions in progress for finished (decision 5): its cursor is made of
# the transactions that wait, those below `xmin` counted as one.
_HERE = """
with here as materialized (
    select position, pg_is_in_recovery() as is_replica,
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint as finished_before
    from feed_head
)
select here.*, o.transaction, o.events,
    case when o.events > 0 and not here.is_replica then pg_current_snapshot()::text end as snapshot
from here left join lateral (
    select case when here.is_replica then greatest(transaction, here.finished_before - 1) end as transaction,
        count(*) as events
    from outbox group by 1 order by 1 limit $1
) o on true
order by o.transaction
"""
_SEEN = "select position, pg_snapshot_xmin(pg_current_snapshot())::text::bigint as finished_before from feed_head"
_NEWEST_PARTITION = """
select p.last - p.first + 1 as size, (select now() - e.at from events e where e.position = p.first) as open_for
from event_partitions p order by p.first desc limit 1
"""
# Of placed events those behind the cursor, and whatever waits: what either's transaction had committed when the cursor
# was made is left out by its snapshot, which a cursor of a moment without waiting events does not need.
_TOUCHED = """
select distinct e.node_id from (
    select node_id, transaction from events
    where tenant_id = $1 and position > (select case when log_follows($2) then $2 end)
    union all
    select node_id, transaction from outbox where tenant_id = $1
) e
where e.node_id is not null
    and ($3::text is null or not pg_visible_in_snapshot(e.transaction::text::xid8, $3::text::pg_snapshot))
"""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to commit with its change."""

    tenant_id: TenantId
    node_id: NodeId | None
    type: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Placed:
    """What a relay has done."""

    position: int
    """The newest of the log."""
    count: int
    """Events that were placed."""
    room: int
    """How many more the log has room for."""


async def write_events(tx: Transaction, events: Sequence[NewEvent]) -> None:
    """Put events into the outbox, in order."""
    if not events:
        return
    await tx.execute(
        _WRITE,
        [new_id("evt") for _ in events],
        [event.tenant_id for event in events],
        [event.node_id for event in events],
        [event.type for event in events],
        [event.payload for event in events],
    )
    tx.wrote_events = True


async def place_events(tx: Transaction, limit: int) -> Placed | None:
    """Move up to `limit` committed events into the log; None while another relay is at it."""
    row = await tx.first(_PLACE, limit, RELAY_LOCK)
    return Placed(row.position, row["count"], row.room) if row else None


async def events_after(source: Transaction | Reader, position: int, limit: int) -> list[Row]:
    """Return the next events of every tenant, in order."""
    return await source.fetch(_AFTER.text, *_AFTER.arguments([position, limit]))


async def events_behind(
    source: Reader, position: int, wanted: Wanted | None, *, reach: int, limit: int
) -> tuple[list[Row], int]:
    """Return the next events that are wanted (everybody's for None) up to the position `reach`, which the log has.

    With them comes the position up to which there are no others. Raises CursorExpired.
    """
    lists = [sorted(each) for each in (wanted.types, wanted.node_ids, wanted.conditions)] if wanted else [[], [], []]
    by_type, by_node, by_condition = map(bool, lists)
    statement = _fitting(by_tenant=wanted is not None, by_type=by_type, by_node=by_node, by_condition=by_condition)
    values = [position, reach, limit, wanted.tenant_id if wanted else None, *lists]
    rows = await source.texts(statement, values, alone=True)
    return rows, rows[-1].position if len(rows) == limit else reach


async def feed_bounds(source: Transaction | Reader) -> tuple[int, int]:
    """Return (floor, head): the log holds the positions after floor up to head."""
    row = await source.first(_HEAD)
    if row is None:
        raise RuntimeError("feed_head lost its row")
    return row.floor, row.position


async def feed_cursor(source: Transaction | Reader) -> FeedCursor:
    """Return the cursor that this reader's view of the data stands at."""
    rows = await source.fetch(_HERE, WAITING_MAX)
    if not rows:
        raise RuntimeError("feed_head lost its row")
    here = rows[0]
    waiting = [(row.transaction, row.events) for row in rows if row.events]
    if here.is_replica:
        return replica_cursor(here.position, here.finished_before, waiting)
    return FeedCursor(here.position, here.snapshot, waiting[0][1] if waiting else 0)


async def touched_nodes(source: Transaction | Reader, tenant_id: TenantId, cursor: FeedCursor) -> list[NodeId]:
    """Return the tenant's nodes that this view of the data has events of which the cursor has not.

    Raises CursorExpired.
    """
    floor, head = await feed_bounds(source)
    refuse_unreachable(cursor, floor=floor, head=head)
    rows = await source.fetch(_TOUCHED, tenant_id, cursor.position, cursor.snapshot)
    return [NodeId(row.node_id) for row in rows]


async def has_seen_all(source: Transaction | Reader, cursors: Sequence[FeedCursor]) -> bool:
    """Say whether this replica's snapshot has everything that the cursors have."""
    row = await source.first(_SEEN)
    if row is None:
        raise RuntimeError("feed_head lost its row")
    return all(has_seen(each, head=row.position, finished_before=row.finished_before) for each in cursors)


async def make_room(tx: Transaction, kept: timedelta) -> int | None:
    """Add a partition to the log, which keeps events for `kept`; None when somebody's lock is in the way.

    Returns the last position that there is room for.
    """
    newest = await tx.first(_NEWEST_PARTITION)
    size = partition_size(newest.size, newest.open_for, kept) if newest else PARTITION_MIN
    room = await tx.value("select make_event_partition($1)", size)
    return None if room is None else int(room)


async def forget_events(tx: Transaction, before: datetime) -> int | None:
    """Drop the partitions of the log at its start of which all is older than `before`; returns the new floor, if any.

    None also when somebody reads the log for longer than others can be kept waiting: then it is for the next time. The
    floor moves with the drop, and who stands below it is refused (`log_follows`).
    """
    floor = await tx.value("select drop_event_partitions($1)", before)
    return None if floor is None else int(floor)
