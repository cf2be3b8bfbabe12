"""The outbox, the relay's statement and the log."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from db.database import Database
from db.events import NewEvent, events_after, feed_bounds, feed_cursor, forget_events, place_events, write_events
from domain.ids import TenantId

TENANT = TenantId("tenant_of_the_test")


async def _write(database: Database, *numbers: int) -> None:
    async with database.transaction() as tx:
        await write_events(tx, [NewEvent(TENANT, None, "test", {"n": number}) for number in numbers])


async def _place(database: Database, limit: int = 100) -> tuple[int, int]:
    async with database.transaction() as tx:
        placed = await place_events(tx, limit)
    return (placed.position, placed.count) if placed else (0, 0)


async def test_events_of_an_undone_transaction_never_happened(database: Database) -> None:
    async def undone() -> None:
        async with database.transaction() as tx:
            await write_events(tx, [NewEvent(TENANT, None, "test", {})])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await undone()
    assert await _place(database) == (0, 0)


async def test_two_relays_at_once_give_each_event_one_position(database: Database) -> None:
    for start in range(0, 60, 3):
        await _write(database, start, start + 1, start + 2)

    async def place_all() -> None:
        async with database.session() as tx:
            while await tx.value("select count(*) from outbox"):
                await place_events(tx, 7)  # nothing, while it is another one's turn

    async with asyncio.timeout(30):
        await asyncio.gather(*(place_all() for _ in range(4)))
    async with database.transaction() as tx:
        rows = await events_after(tx, 0, 1000)
        assert await tx.value("select count(*) from outbox") == 0
    assert [row.position for row in rows] == list(range(1, 61))
    assert sorted(row.payload["n"] for row in rows) == list(range(60))


async def test_a_cursor_says_what_waits_only_when_something_does(database: Database) -> None:
    await _write(database, 1, 2)
    async with database.transaction() as tx:
        waiting = await feed_cursor(tx)
    assert (waiting.position, waiting.waiting) == (0, 2)
    assert waiting.snapshot is not None
    await _place(database)
    async with database.transaction() as tx:
        settled = await feed_cursor(tx)
    assert (settled.position, settled.snapshot) == (2, None)


async def test_forgetting_moves_the_floor_and_never_the_head(database: Database) -> None:
    await _write(database, 1, 2, 3)
    await _place(database)
    async with database.transaction() as tx:
        assert await forget_events(tx, datetime.now(UTC) - timedelta(days=1)) is None
        assert await feed_bounds(tx) == (0, 3)
        assert await forget_events(tx, datetime.now(UTC) + timedelta(days=1)) == 3
        assert await feed_bounds(tx) == (3, 3)
    await _write(database, 4)
    assert await _place(database) == (4, 1)
