"""Connections: held no longer than needed, and clean when they come back."""

import asyncio

import asyncpg
import pytest

from db.connections import TRANSIENT, Planning
from db.database import Database, Reader


@pytest.fixture
async def narrow(database_url: str) -> Database:
    """A pool of two connections."""
    return await Database.connect(database_url, size_max=2)


async def test_operations_that_read_and_write_do_not_wait_for_each_other_for_ever(narrow: Database) -> None:
    async def operation(number: int) -> int:
        reader = narrow.reader(snapshot=False)
        await reader.value("select 1")
        async with narrow.transaction() as tx:
            await tx.execute("select pg_sleep(0.001)")
        found = await reader.value("select $1::int", number)
        await reader.close()
        return int(found)

    async with asyncio.timeout(10):
        assert await asyncio.gather(*(operation(number) for number in range(20))) == list(range(20))
    await narrow.close()


async def test_a_snapshot_sees_one_state_and_a_plain_reader_what_was_just_written(narrow: Database) -> None:
    async with narrow.transaction() as tx:
        await tx.execute("create table counted (n int)")
    for snapshot, seen in ((True, [0, 0]), (False, [0, 1])):
        reader = Reader(narrow, snapshot=snapshot)
        counts = [await reader.value("select count(*) from counted")]
        async with narrow.transaction() as tx:
            await tx.execute("insert into counted values (1)")
        counts.append(await reader.value("select count(*) from counted"))
        await reader.close()
        assert counts == seen
        async with narrow.transaction() as tx:
            await tx.execute("delete from counted")
    await narrow.close()


async def test_a_cancelled_reader_leaves_no_transaction_in_the_pool(narrow: Database) -> None:
    for _ in range(4):
        reader = narrow.reader(snapshot=True)
        waiting = asyncio.create_task(reader.value("select pg_sleep(30)"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await reader.close()
    async with asyncio.timeout(10), narrow.session() as session:
        open_ones = await session.value(
            "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in trans%'"
        )
    assert open_ones == 0
    await narrow.close()


async def test_a_reader_whose_connection_was_cut_ends_quietly(narrow: Database) -> None:
    for _ in range(4):
        reader = narrow.reader(snapshot=True)
        pid = await reader.value("select pg_backend_pid()")
        async with narrow.session() as session:
            await session.execute("select pg_terminate_backend($1)", pid)
        with pytest.raises(TRANSIENT):
            await reader.value("select 1")
        await reader.close()
    async with narrow.session() as session:
        assert await session.value("select 1") == 1
    await narrow.close()


async def test_who_waits_for_a_connection_gets_one_that_single_statements_would_keep(database_url: str) -> None:
    narrow = await Database.connect(database_url, size_max=1)

    async def alone() -> None:
        for _ in range(50):
            await narrow.fetch_alone("select 1", (), Planning.FREE)

    async with asyncio.timeout(10):
        asking = asyncio.create_task(alone())
        await asyncio.sleep(0)
        async with narrow.transaction() as tx:
            assert await tx.value("select 1") == 1
        await asking
    await narrow.close()


@pytest.mark.parametrize("planning", Planning)
async def test_a_statement_alone_is_planned_as_it_asks_and_leaves_nothing_to_others(
    narrow: Database, planning: Planning
) -> None:
    ask = "select current_setting('plan_cache_mode')"
    for other in Planning:
        await narrow.fetch_alone("select 1", (), other)
        (row,) = await narrow.fetch_alone(ask, (), planning)
        assert row[0] == planning.value
    async with narrow.session() as session:
        assert await session.value(ask) == "auto"
    reader = narrow.reader(snapshot=True)
    assert await reader.value(ask) == "auto"
    await reader.close()
    await narrow.close()


async def test_a_kept_connection_that_was_cut_is_not_lent_again(narrow: Database) -> None:
    for _ in range(3):
        (row,) = await narrow.fetch_alone("select pg_backend_pid()", (), Planning.FREE)
        async with narrow.session() as session:
            own = await session.value("select pg_backend_pid()")
        other = await Database.connect(narrow.dsn)
        async with other.session() as session:
            await session.execute("select pg_terminate_backend(pid) from unnest($1::int[]) pid", [row[0], own])
        await other.close()
        await asyncio.sleep(0.1)
        assert [tuple(each) for each in await narrow.fetch_alone("select 2", (), Planning.FREE)] == [(2,)]
    await narrow.close()


async def test_a_statement_alone_that_fails_or_is_cancelled_harms_no_other(narrow: Database) -> None:
    for _ in range(3):
        with pytest.raises(asyncpg.DivisionByZeroError):
            await narrow.fetch_alone("select 1 / 0", (), Planning.FREE)
        waiting = asyncio.create_task(narrow.fetch_alone("select pg_sleep(30)", (), Planning.EACH))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(10):
        assert [tuple(each) for each in await narrow.fetch_alone("select 2", (), Planning.FREE)] == [(2,)]
    await narrow.close()
