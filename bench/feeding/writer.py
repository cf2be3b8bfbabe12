"""Who commits: `python -m bench.feeding.writer DSN TENANT KIND`, told by a line of JSON at a time.

Events go through the product's own outbox, one transaction for all that are due, which is one event as long as
PostgreSQL keeps up. For this project's side it is as a process without reconcilers (`serve --no-reconcile`): it places
what it has committed, and tells the others.

`{"first": n, "count": c, "rate": r, "jitter": j, "sent": path}` commits numbers n to n+c-1, r a second, each up to j of
an interval late; the times just before each commit go to the file, in nanoseconds.
"""

import asyncio
import random
import sys
import time
from typing import Final

import uvloop

from bench.feeding.sides import Kind
from bench.feeding.times import keep_times
from bench.stand.talk import Words, answer, told
from db.database import Database
from db.events import NewEvent, write_events
from db.hints import Hints
from domain.events import CONDITION_CHANGED
from domain.ids import TenantId
from reconcilers.loop import run
from reconcilers.relay import relay

CONDITION: Final = "BenchCondition"
_SECOND: Final = 1_000_000_000


def numbered(tenant_id: TenantId, number: int) -> NewEvent:
    """Return the event with a number: about no node, so that no row is read for it by any side."""
    payload = {
        "condition": CONDITION,
        "status": "true",
        "reason": f"bench-{number}",
        "message": "An event of the bench, about as long as others are.",
        "noSchedule": False,
    }
    return NewEvent(tenant_id, None, CONDITION_CHANGED, payload)


class Writer:
    """Commits at a rate."""

    def __init__(self, database: Database, tenant_id: TenantId) -> None:
        self._database = database
        self._tenant_id = tenant_id

    async def write(self, first: int, count: int, rate: float, jitter: float, sent: str) -> Words:
        """Commit the numbers, and return how many seconds it took."""
        draw = random.Random(first)  # noqa: S311 - a time to wait
        begun = time.monotonic_ns()
        due = [begun + int((place + jitter * draw.random()) * _SECOND / rate) for place in range(count)]
        committed: list[int] = []
        while len(committed) < count:
            await asyncio.sleep(max(0, due[len(committed)] - time.monotonic_ns()) / _SECOND)
            now = time.monotonic_ns()
            ready = [place for place in range(len(committed), count) if due[place] <= now]
            async with self._database.transaction() as tx:
                await write_events(tx, [numbered(self._tenant_id, first + place) for place in ready])
                before_commit = time.monotonic_ns()
            committed.extend([before_commit] * len(ready))
        keep_times(sent, committed)
        return {"seconds": (time.monotonic_ns() - begun) / _SECOND}


async def _follow(dsn: str, tenant_id: TenantId, kind: Kind) -> None:
    database = await Database.connect(dsn, size_max=2)
    hints = Hints(dsn)
    beside = (run(relay(database, hints, pause_seconds=None)), hints.run(lambda _: None))
    tasks = [asyncio.create_task(each) for each in beside] if kind is Kind.OURS else []
    try:
        writer = Writer(database, tenant_id)
        async for words in told():
            answer(await writer.write(**words))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await database.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_follow(sys.argv[1], TenantId(sys.argv[2]), Kind(sys.argv[3])))
