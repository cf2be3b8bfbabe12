"""What happens when, all of it from a seed."""

import asyncio
import random
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from tests.faults.stand import Program, Stand, kill_backend

CONNECTION_LOST: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: at which second it begins, what it is, whom it befalls (modulo their number), for how long."""

    at: float
    kind: str
    target: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.at:5.1f} s  {self.kind} {self.target} for {self.seconds:.1f} s"


async def _killed(program: Program, fault: Fault) -> None:
    program.kill()
    await asyncio.sleep(fault.seconds)
    program.start()


async def _paused(program: Program, fault: Fault) -> None:
    program.signal(signal.SIGSTOP)
    await asyncio.sleep(fault.seconds)
    program.signal(signal.SIGCONT)


async def kill_api(stand: Stand, fault: Fault) -> None:
    await _killed(stand.apis[fault.target % len(stand.apis)], fault)


async def kill_worker(stand: Stand, fault: Fault) -> None:
    await _killed(stand.workers[fault.target % len(stand.workers)], fault)


async def kill_workers(stand: Stand, fault: Fault) -> None:
    """The relay is in one of them."""
    await asyncio.gather(*(_killed(worker, fault) for worker in stand.workers))


async def pause_api(stand: Stand, fault: Fault) -> None:
    await _paused(stand.apis[fault.target % len(stand.apis)], fault)


async def pause_worker(stand: Stand, fault: Fault) -> None:
    await _paused(stand.workers[fault.target % len(stand.workers)], fault)


async def cut_sockets(stand: Stand, fault: Fault) -> None:
    stand.networks[fault.target % len(stand.networks)].cut()


async def terminate_backend(stand: Stand, fault: Fault) -> None:
    with suppress(*CONNECTION_LOST):
        backends = await stand.backends()
        connection = await asyncpg.connect(stand.dsn)
        try:
            await connection.execute("select pg_terminate_backend($1)", backends[fault.target % len(backends)])
        finally:
            await connection.close()


async def crash_postgres(stand: Stand, fault: Fault) -> None:
    """A backend that dies of SIGKILL makes PostgreSQL end all of them and recover from its log."""
    with suppress(*CONNECTION_LOST):
        backends = await stand.backends()
        await kill_backend(backends[fault.target % len(backends)])


async def kill_redis(stand: Stand, fault: Fault) -> None:
    stand.redis.kill()
    await asyncio.sleep(fault.seconds)
    stand.redis.start()


async def pause_redis(stand: Stand, fault: Fault) -> None:
    assert stand.redis.process is not None
    stand.redis.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(fault.seconds)
    stand.redis.process.send_signal(signal.SIGCONT)


Kind = Callable[[Stand, Fault], Coroutine[Any, Any, None]]
KINDS: Final[dict[Kind, int]] = {
    kill_api: 4,
    kill_worker: 3,
    kill_workers: 1,
    pause_api: 3,
    pause_worker: 3,
    cut_sockets: 3,
    terminate_backend: 4,
    crash_postgres: 1,
    kill_redis: 2,
    pause_redis: 1,
}
_BY_NAME: Final = {kind.__name__: kind for kind in KINDS}


def plan(seed: int, seconds: float) -> list[Fault]:
    """Draw what happens in that time, one fault each half a second or so."""
    chance = random.Random(seed)  # noqa: S311 - repeatable is what it is to be
    faults, at = [], 0.0
    while (at := at + chance.uniform(0.2, 0.9)) < seconds:
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        faults.append(Fault(at, kind.__name__, chance.randrange(64), chance.uniform(0.1, 2.0)))
    # Whatever was drawn, everybody has to resume once.
    return [*faults, Fault(seconds, cut_sockets.__name__, 0, 0), Fault(seconds, cut_sockets.__name__, 1, 0)]


async def carry_out(stand: Stand, faults: list[Fault]) -> None:
    """Let them happen, each at its time, and return when the last has passed."""
    began = asyncio.get_running_loop().time()
    locks: dict[str, asyncio.Lock] = {}

    async def befall(fault: Fault) -> None:
        await asyncio.sleep(max(0.0, began + fault.at - asyncio.get_running_loop().time()))
        # One thing at a time for a kind of program: who is stopped cannot be started, and the other way round.
        subject = fault.kind.split("_")[1].rstrip("s")
        async with locks.setdefault(subject, asyncio.Lock()):
            await _BY_NAME[fault.kind](stand, fault)

    async with asyncio.TaskGroup() as tasks:
        for fault in faults:
            tasks.create_task(befall(fault))
