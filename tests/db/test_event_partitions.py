"""The event log in partitions: made when the room ends, dropped as a whole, and never with a gap for who reads."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from alembic import command

from db.database import Database
from db.events import (
    RELAY_LOCK,
    NewEvent,
    Placed,
    events_after,
    feed_bounds,
    forget_events,
    make_room,
    place_events,
    touched_nodes,
    write_events,
)
from db.hints import Hints
from db.migrate import _config, _with_connection, check, migrate
from domain.cursor import FeedCursor
from domain.errors import CursorExpired
from domain.ids import TenantId
from reconcilers.relay import relay

TENANT = TenantId("tenant_of_the_test")
KEPT = timedelta(days=7)
LONG_AGO = timedelta(days=30)
BEHIND = "select position from events where log_follows($1) and position > $1 order by position limit 1000"


async def _commit(database: Database, count: int, *, age: timedelta = timedelta()) -> None:
    """Place events of that age, one transaction each, as the relay does."""
    async with database.transaction() as tx:
        await write_events(tx, [NewEvent(TENANT, None, "test", {}) for _ in range(count)])
        await tx.execute("update outbox set at = at - $1::interval", age)
    while count:
        async with database.transaction() as tx:
            placed = await place_events(tx, count)
        assert placed
        assert placed.count
        count -= placed.count


async def _small_partitions(database: Database, *sizes: int) -> None:
    """Have the log end at once, and go on in partitions of these sizes."""
    async with database.transaction() as tx:
        await tx.execute("drop table events_p1")
        await tx.execute("update feed_head set room = 0")
        for size in sizes:
            await tx.execute("select make_event_partition($1)", size)


async def _names(database: Database) -> list[str]:
    async with database.session() as session:
        return [row.name for row in await session.fetch("select name from event_partitions order by first")]


async def _forget(database: Database, before: datetime | None = None) -> int | None:
    async with database.transaction() as tx:
        return await forget_events(tx, before or datetime.now(UTC) - KEPT)


async def _positions(database: Database) -> list[int]:
    async with database.session() as session:
        return [row.position for row in await events_after(session, 0, 100_000)]


async def test_no_more_is_placed_than_there_is_room_and_the_rest_waits_for_a_partition(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 3)
    async with database.transaction() as tx:
        await write_events(tx, [NewEvent(TENANT, None, "test", {}) for _ in range(5)])
    async with database.transaction() as tx:
        assert await place_events(tx, 100) == Placed(3, 3, 0)
        assert await place_events(tx, 100) == Placed(3, 0, 0)
        assert await make_room(tx, KEPT) == 3 + 4096
        assert await place_events(tx, 100) == Placed(5, 2, 4094)
    assert await _positions(database) == [1, 2, 3, 4, 5]


async def test_a_relay_that_has_not_the_turn_takes_nothing(database: Database) -> None:
    async with database.transaction() as tx:
        await write_events(tx, [NewEvent(TENANT, None, "test", {})])
    async with database.transaction() as other:
        await other.execute("select pg_advisory_xact_lock($1)", RELAY_LOCK)
        async with database.transaction() as tx:
            assert await place_events(tx, 100) is None
            assert await tx.value("select count(*) from outbox") == 1
    async with database.transaction() as tx:
        assert await place_events(tx, 100) == Placed(1, 1, 4095)


async def test_the_relay_makes_the_next_partition_before_the_last_is_full(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 2)
    placing = relay(database, Hints("memory://"))
    for _ in range(3):
        async with database.transaction() as tx:
            await write_events(tx, [NewEvent(TENANT, None, "test", {}) for _ in range(2)])
        assert (await placing.activate()).done == 2
    assert await _positions(database) == [1, 2, 3, 4, 5, 6]
    assert await _names(database) == ["events_p1", "events_p3"]


async def test_partitions_of_which_all_is_old_are_dropped_and_the_floor_goes_with_them(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 3, 3, 3)
    await _commit(database, 5, age=LONG_AGO)
    await _commit(database, 2)
    assert await _forget(database) == 3
    assert await _names(database) == ["events_p4", "events_p7"]
    assert await _forget(database) is None
    async with database.session() as session:
        assert await feed_bounds(session) == (3, 7)
        assert [row.position for row in await session.fetch(BEHIND, 3)] == [4, 5, 6, 7]
        with pytest.raises(asyncpg.PostgresError) as refusal:
            await session.fetch(BEHIND, 2)
    assert (refusal.value.sqlstate, refusal.value.detail) == ("FG002", "2 3 7")


async def test_an_old_event_that_was_placed_late_does_not_take_newer_ones_with_it(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 3, 3)
    await _commit(database, 1)
    await _commit(database, 3, age=LONG_AGO)
    assert await _forget(database) is None
    assert await _positions(database) == [1, 2, 3, 4]


async def test_a_log_of_which_all_is_old_begins_anew_where_it_ended(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 3, 3)
    await _commit(database, 2, age=LONG_AGO)
    assert await _forget(database) == 2
    assert await _names(database) == ["events_p3"]
    assert await _forget(database) is None
    await _commit(database, 2)
    assert await _positions(database) == [3, 4]


async def test_a_snapshot_from_before_the_drop_is_refused_and_told_no_gap(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 3, 3)
    await _commit(database, 3, age=LONG_AGO)
    await _commit(database, 1)
    reader = database.reader(snapshot=True)
    assert await reader.value("select floor from feed_head") == 0
    assert await _forget(database) == 3
    assert await reader.value("select floor from feed_head") == 0  # it sees the head as it was
    with pytest.raises(CursorExpired):
        await reader.fetch(BEHIND, 1)
    await reader.close()


async def test_what_a_view_of_before_the_drop_has_not_seen_is_no_short_list(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 3, 3)
    await _commit(database, 3, age=LONG_AGO)
    await _commit(database, 1)
    reader = database.reader(snapshot=True)
    assert await reader.value("select floor from feed_head") == 0
    assert await _forget(database) == 3
    with pytest.raises(CursorExpired):
        await touched_nodes(reader, TENANT, FeedCursor(1))
    await reader.close()


async def test_a_snapshot_from_before_all_was_forgotten_is_refused_too(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 3)
    await _commit(database, 3, age=LONG_AGO)
    reader = database.reader(snapshot=True)
    assert await reader.value("select floor from feed_head") == 0
    assert await _forget(database) == 3
    with pytest.raises(CursorExpired):
        await reader.fetch(BEHIND, 1)
    await reader.close()


async def test_who_reads_the_log_for_long_puts_off_the_drop_and_makes_nobody_wait(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 3, 3)
    await _commit(database, 3, age=LONG_AGO)
    async with database.transaction() as reading:
        assert len(await reading.fetch(BEHIND, 0)) == 3
        assert await _forget(database) is None
        await _commit(database, 1)  # the feed goes on
        async with database.transaction() as tx:
            assert await make_room(tx, KEPT) == 6 + 4096  # and so does what gives it room
        assert [row.position for row in await reading.fetch(BEHIND, 0)] == [1, 2, 3, 4]
    assert await _forget(database) == 3


async def test_a_log_that_somebody_has_locked_grows_while_there_is_room(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 3)
    async with owner.transaction() as analyzing:
        await analyzing.execute("lock table only events in share update exclusive mode")
        async with database.transaction() as tx:
            assert await make_room(tx, KEPT) is None
            await write_events(tx, [NewEvent(TENANT, None, "test", {})])
            assert await place_events(tx, 100) == Placed(1, 1, 2)


async def _write_old(database: Database, transactions: int, done: asyncio.Event) -> None:
    for _ in range(transactions):
        async with database.transaction() as tx:
            await write_events(tx, [NewEvent(TENANT, None, "test", {}) for _ in range(4)])
            await tx.execute("update outbox set at = at - $1::interval", LONG_AGO)
    done.set()


async def _place_all(database: Database, done: asyncio.Event) -> None:
    count = 1
    while count or not done.is_set():
        async with database.session() as tx:
            placed = await place_events(tx, 7)
            count = placed.count if placed else 1
            if placed and placed.room < 7:
                await tx.execute("select make_event_partition(5)")
                count = 1


async def _forget_often(database: Database, done: asyncio.Event) -> list[int]:
    floors = []
    while not done.is_set():
        floors.append(await _forget(database) or 0)
        await asyncio.sleep(0.01)
    return [floor for floor in floors if floor]


async def _read_on(database: Database, done: asyncio.Event) -> None:
    """Follow the log in snapshots; fail where an event is passed over that was not said to be gone."""
    position = 0
    while not done.is_set():
        reader = database.reader(snapshot=True)
        try:
            for row in await reader.fetch(BEHIND, position):
                assert row.position == position + 1
                position = row.position
        except CursorExpired:
            async with database.session() as session:
                position = (await feed_bounds(session))[0]
        finally:
            await reader.close()


async def test_relays_forgetting_and_readers_at_once_lose_nothing_and_see_no_gap(
    database: Database, owner: Database
) -> None:
    await _small_partitions(owner, 5)
    done = asyncio.Event()
    _, _, _, floors, *_ = await asyncio.gather(
        _write_old(database, 30, done),
        _place_all(database, done),
        _place_all(database, done),
        _forget_often(database, done),
        _read_on(database, done),
        _read_on(database, done),
    )
    async with database.session() as session:
        floor, head = await feed_bounds(session)
    assert head == 120
    assert floors == sorted(set(floors))
    assert await _positions(database) == list(range(floor + 1, head + 1))


async def test_a_log_from_before_partitions_is_taken_over_as_it_is(database_url: str, owner: Database) -> None:
    await _with_connection(database_url, lambda connection: command.downgrade(_config(connection), "0014"))
    async with owner.transaction() as tx:
        await tx.execute(
            "insert into events select p, p::text, $1, null, 'test', '{}', now(), p from generate_series(11, 20) p",
            TENANT,
        )
        await tx.execute("update feed_head set floor = 10, position = 20")
    await migrate(database_url)
    await check(database_url)
    assert await _names(owner) == ["events_p11", "events_p21"]
    await _commit(owner, 2)
    assert await _positions(owner) == list(range(11, 23))
    await _with_connection(database_url, lambda connection: command.downgrade(_config(connection), "0014"))
    assert await _positions(owner) == list(range(11, 23))
    await migrate(database_url)
    assert await _forget(owner, datetime.now(UTC) + timedelta(days=1)) == 22


async def test_a_relay_waits_for_room_that_is_being_made(database: Database, owner: Database) -> None:
    await _small_partitions(owner, 2)
    await _commit(database, 1)
    async with database.transaction() as tx:
        await write_events(tx, [NewEvent(TENANT, None, "test", {}) for _ in range(3)])
    async with database.session() as relay_session:
        async with database.transaction() as growing:
            assert await growing.value("select make_event_partition(3)") == 5
            placing = asyncio.create_task(place_events(relay_session, 100))
            await asyncio.sleep(0.2)
            assert not placing.done()
        assert await placing == Placed(4, 3, 1)
