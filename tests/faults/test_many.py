"""Three API processes and two workers on one database: each gives the same feed, and work moves to who is left."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from db.database import Database
from tests.faults.checker import all_seen, at_rest, bugs_in, check
from tests.faults.clients import PATIENCE_SECONDS, Node, Reporter, Watcher, cursor_at
from tests.faults.stand import Stand, stand
from tests.faults.zygote import Zygote
from tests.support.waiting import until, until_seen

IMPATIENT = {"db.connections.IDLE_SECONDS_MAX": 0.5, "db.connections.TRANSACTION_SECONDS_MAX": 2.0}
"""So that what is stopped in a transaction is waited for a little, not for most of a minute."""


@asynccontextmanager
async def _watching(running: Stand) -> AsyncIterator[list[Watcher]]:
    """Watch each API process while the block lasts."""
    cursor = await cursor_at(running.calm_ports[0])
    watchers = [Watcher([port], cursor) for port in running.calm_ports]
    tasks = [asyncio.create_task(watcher.run()) for watcher in watchers]
    try:
        yield watchers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _told(reporter: Reporter, http: httpx.AsyncClient, watchers: list[Watcher]) -> None:
    """Report a change, and wait until every watcher has heard of it, which takes a relay and who applies it."""
    before = max(len(watcher.seen) for watcher in watchers)
    (node,) = reporter.nodes
    node.version += 1
    await reporter.report(http, node)
    await until(lambda: all(len(watcher.seen) > before for watcher in watchers))


async def _move_work(running: Stand, reporter: Reporter, http: httpx.AsyncClient, watchers: list[Watcher]) -> None:
    """Kill each worker in turn, and stop the first at many moments: the other one does it all."""
    for worker in running.workers:
        worker.kill()
        await _told(reporter, http, watchers)
        worker.start()
        await _told(reporter, http, watchers)
    chance = random.Random(5)  # noqa: S311 - the same moments in every run, as far as the machine allows
    for _ in range(6):
        running.workers[0].signal(signal.SIGSTOP)
        await _told(reporter, http, watchers)
        running.workers[0].signal(signal.SIGCONT)
        await asyncio.sleep(chance.uniform(0, 0.1))


@pytest.mark.parametrize("over", ["redis", "postgres"])
async def test_every_process_gives_every_event_in_order_while_work_moves_from_worker_to_worker(
    zygote: Zygote, database_url: str, over: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with (
        stand(zygote, database_url, log, apis=3, over=over, constants=IMPATIENT) as running,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http,
        _watching(running) as watchers,
    ):
        node = Node("n1")
        reporter = Reporter(running.calm_ports, [node], random.Random(3), PATIENCE_SECONDS)  # noqa: S311 - as above
        await _told(reporter, http, watchers)
        await _move_work(running, reporter, http, watchers)
        database = await Database.connect(running.dsn, size_max=2)
        try:
            await at_rest(database)
            await all_seen(database, watchers)
            await check(database, [node], watchers)
        finally:
            await database.close()
    assert [watcher.connections for watcher in watchers] == [1, 1, 1]
    assert bugs_in(log) == []


@pytest.mark.parametrize("over", ["redis", "postgres"])
async def test_a_worker_that_hardly_ever_looks_applies_a_report_that_came_to_an_api_process(
    zygote: Zygote, database_url: str, over: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    hour = {"reconcilers.inventory.PAUSE_SECONDS": 3600.0}
    async with (
        stand(zygote, database_url, log, apis=1, workers=1, over=over, constants=hour) as running,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http,
        _watching(running) as (watcher,),
    ):
        node = Node("n1")
        reporter = Reporter(running.calm_ports, [node], random.Random(3), PATIENCE_SECONDS)  # noqa: S311 - one process

        def applied() -> int:
            return sum(kind == "NodeInventoryChanged" for kind, _ in watcher.told)

        async def reported() -> bool:
            node.version += 1
            await reporter.report(http, node)
            await asyncio.sleep(0.2)  # or it says so before anybody listens
            return applied() > 0

        await until_seen(reported)
        for _ in range(3):
            before = applied()
            node.version += 1
            await reporter.report(http, node)
            await until(lambda before=before: applied() > before)  # type: ignore[misc]
    assert bugs_in(log) == []


async def test_an_api_process_places_its_own_events_where_there_is_no_worker(
    zygote: Zygote, database_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with (
        stand(zygote, database_url, log, workers=0) as running,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http,
        _watching(running) as watchers,
    ):
        for number in range(4):
            before = [len(watcher.seen) for watcher in watchers]
            reporter = Reporter(running.calm_ports, [Node(f"n{number}")], random.Random(number), PATIENCE_SECONDS)  # noqa: S311
            await reporter.report(http, reporter.nodes[0])
            await until(
                lambda before=before: all(  # type: ignore[misc]
                    len(watcher.seen) > seen for watcher, seen in zip(watchers, before, strict=True)
                )
            )
    assert bugs_in(log) == []
