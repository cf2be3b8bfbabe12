"""What a client sees of several processes: how late a change is told, and how late when work has to move."""

import asyncio
import random
import signal
import statistics
import time
from dataclasses import dataclass

import httpx

from bench.several.programs import Programs
from bench.stand.errors import CannotMeasure
from bench.stand.progress import say
from db.database import Database
from tests.faults.checker import all_seen, at_rest, first_difference, log_of
from tests.faults.clients import PATIENCE_SECONDS, Node, Reporter, Watcher, cursor_at

NODES = 50
REPORTS = 100
_TOLD_SECONDS_MAX = 60


@dataclass(frozen=True, slots=True)
class Seen:
    """From a change that is reported until every process has told it, in seconds; and what was told."""

    usual: list[float]
    killed: list[float]
    stopped: float
    events: int

    def document(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "figures": {
                "report_to_all_clients_p50_ms": round(statistics.median(self.usual) * 1000, 1),
                "report_to_all_clients_max_ms": round(max(self.usual) * 1000, 1),
                "after_a_worker_was_killed_ms": [round(each * 1000, 1) for each in self.killed],
                "while_a_worker_is_stopped_ms": round(self.stopped * 1000, 1),
                "events": self.events,
            },
            "ratios": {},
        }


async def seen(programs: Programs) -> Seen:
    """Run the clients; raises CannotMeasure when an event is missing, doubled or out of order anywhere."""
    cursor = await cursor_at(programs.ports[0])
    watchers = [Watcher([port], cursor) for port in programs.ports]
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        try:
            found = await _measured(programs, watchers, http)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
    return found


async def _measured(programs: Programs, watchers: list[Watcher], http: httpx.AsyncClient) -> Seen:
    node = Node("measured")
    reporter = Reporter(programs.ports, [node], random.Random(1), PATIENCE_SECONDS)  # noqa: S311 - which server is asked

    async def told() -> float:
        before = max(len(watcher.seen) for watcher in watchers)
        node.version += 1
        began = time.perf_counter()
        await reporter.report(http, node)
        async with asyncio.timeout(_TOLD_SECONDS_MAX):
            while any(len(watcher.seen) <= before for watcher in watchers):  # noqa: ASYNC110 - another process's
                await asyncio.sleep(0.001)
        return time.perf_counter() - began

    await told()
    say(f"{NODES} made-up agents report …")
    await asyncio.to_thread(programs.simulate, NODES)
    say("reporting changes, and killing and stopping workers …")
    usual = [await told() for _ in range(REPORTS)]
    killed = []
    for worker in programs.workers[:]:
        worker.kill()
        killed.append(await told())
        await asyncio.to_thread(programs.start_worker)
    first = programs.workers[-1]
    first.send_signal(signal.SIGSTOP)
    stopped = await told()
    first.send_signal(signal.SIGCONT)
    return Seen(usual, killed, stopped, await _checked(programs, watchers))


async def _checked(programs: Programs, watchers: list[Watcher]) -> int:
    database = await Database.connect(programs.dsn, size_max=2)
    try:
        await at_rest(database)
        await all_seen(database, watchers)
        log = await log_of(database)
        for watcher in watchers:
            if watcher.seen != log:
                raise CannotMeasure(
                    f"a process told other events than the log has: {first_difference(watcher.seen, log)}"
                )
    finally:
        await database.close()
    return len(log)
