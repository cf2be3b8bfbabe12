"""Three API processes and two workers on one database: each gives the same feed, and work moves to who is left."""

import asyncio
import random
import signal
from pathlib import Path

import httpx
import pytest

from db.database import Database
from tests.faults.checker import all_seen, at_rest, bugs_in, check
from tests.faults.clients import PATIENCE_SECONDS, Node, Reporter, Watcher, cursor_at
from tests.faults.stand import Stand, stand
from tests.faults.zygote import Zygote
from tests.support.waiting import until


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
        stand(zygote, database_url, log, apis=3, over=over) as running,
        httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http,
    ):
        cursor = await cursor_at(running.calm_ports[0])
        watchers = [Watcher([port], cursor) for port in running.calm_ports]
        node = Node("n1")
        reporter = Reporter(running.calm_ports, [node], random.Random(3), PATIENCE_SECONDS)  # noqa: S311 - as above
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        await _told(reporter, http, watchers)
        await _move_work(running, reporter, http, watchers)
        database = await Database.connect(running.dsn, size_max=2)
        try:
            await at_rest(database)
            await all_seen(database, watchers)
            await check(database, [node], watchers)
        finally:
            await database.close()
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
    assert [watcher.connections for watcher in watchers] == [1, 1, 1]
    assert bugs_in(log) == []
