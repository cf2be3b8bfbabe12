"""A process that is stopped in the middle of something keeps nobody else from it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from db import connections
from db.connections import TRANSIENT
from db.database import Database, Transaction
from tests.support.waiting import until_seen

LOCK = 7


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS_MAX", 0.5)
    monkeypatch.setattr(connections, "TRANSACTION_SECONDS_MAX", 1)


Stop = Callable[[Transaction, asyncio.Event], Awaitable[object]]


async def _after_a_statement(_: Transaction, goes_on: asyncio.Event) -> None:
    await goes_on.wait()


async def _before_its_values(tx: Transaction, goes_on: asyncio.Event) -> None:
    """As asyncpg does with a statement that is new to the connection, which is why it is not idle then."""
    await tx._connection.prepare("select 1")
    await goes_on.wait()


@pytest.mark.parametrize("stop", [_after_a_statement, _before_its_values])
@pytest.mark.usefixtures("_impatient")
async def test_what_a_stopped_process_holds_in_a_transaction_is_free_after_a_while(
    database_url: str, stop: Stop
) -> None:
    stopped, other = await Database.connect(database_url), await Database.connect(database_url)
    held, goes_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with stopped.transaction() as tx:
            assert await tx.value("select pg_try_advisory_xact_lock($1)", LOCK)
            held.set()
            await stop(tx, goes_on)
            await tx.execute("insert into tenants (id, name) values ('tenant_late', 'late')")

    async def is_free() -> bool:
        async with other.transaction() as tx:
            return bool(await tx.value("select pg_try_advisory_xact_lock($1)", LOCK))

    working = asyncio.create_task(work())
    await held.wait()
    assert not await is_free()
    await until_seen(is_free)
    goes_on.set()
    with pytest.raises(TRANSIENT):  # its loop tries again; what it had begun never happened
        await working
    async with other.transaction() as tx:
        assert await tx.value("select count(*) from tenants") == 0
    await asyncio.gather(stopped.close(), other.close())


@pytest.mark.usefixtures("_impatient")
async def test_a_snapshot_waits_longer_for_a_client_that_reads_slowly(database_url: str) -> None:
    database = await Database.connect(database_url)
    reader = database.reader(snapshot=True)
    first = await reader.value("select txid_current_snapshot()::text")
    await asyncio.sleep(1.2)
    assert await reader.value("select txid_current_snapshot()::text") == first
    await reader.close()
    await database.close()
