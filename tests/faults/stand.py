"""Several API processes and workers on one PostgreSQL and one Redis, and what can befall each of them."""

import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
import psutil

from db.embedded import EmbeddedPostgres
from tests.faults.bad_network import BadNetwork, bad_network
from tests.faults.zygote import CONSTANTS, Zygote
from tests.support.program import free_port
from tests.support.redis import Redis, running_redis
from web.server import background

TOKEN = "operator-of-the-test"  # noqa: S105 - a test's
START_SECONDS_MAX = 60.0
# What was acknowledged must outlive a crash of PostgreSQL, as the kernel's cache does; one of the machine it need not.
POSTGRES = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB"}


@dataclass(slots=True)
class Program:
    """One process of the product, which is started anew as often as it is killed."""

    arguments: tuple[str, ...]
    env: Mapping[str, str]
    zygote: Zygote
    log: Path
    process: psutil.Process | None = None
    kept: bool = False
    """Whether it is started again when it ends by itself, as one that meets with no database when it starts does."""

    def start(self) -> None:
        """Start it, unless it runs."""
        self.kept = True
        if self.process is None or not self.process.is_running():
            self.process = self.zygote.start(self.arguments, self.env, self.log)

    async def keep(self) -> None:
        """Start it again whenever it ended by itself."""
        while True:
            await asyncio.sleep(0.2)
            if self.kept:
                self.start()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        with suppress(psutil.NoSuchProcess):
            assert self.process is not None
            self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it with SIGKILL; it stays so until it is started."""
        self.kept = False
        self.signal(signal.SIGKILL)


@dataclass(slots=True)
class Stand:
    """All that runs."""

    dsn: str
    redis: Redis
    apis: list[Program]
    workers: list[Program]
    networks: list[BadNetwork]
    calm_ports: list[int]

    async def ready(self) -> None:
        """Wait until every API process serves."""
        async with httpx.AsyncClient() as http, asyncio.timeout(START_SECONDS_MAX):
            for port in self.calm_ports:
                while True:
                    with suppress(httpx.TransportError):
                        if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == httpx.codes.OK:
                            break
                    await asyncio.sleep(0.05)

    async def backends(self) -> list[int]:
        """Return the processes of PostgreSQL that serve the product."""
        connection = await asyncpg.connect(self.dsn)
        try:
            rows = await connection.fetch(
                "select pid from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid() order by backend_start, pid"
            )
            return [row["pid"] for row in rows]
        finally:
            await connection.close()


@contextmanager
def own_postgres(base: Path | None = None) -> Iterator[EmbeddedPostgres]:
    """Run a PostgreSQL of one's own while the block lasts, in a new folder or in `base`."""
    folder = base or Path(tempfile.mkdtemp(prefix="fg-fault-"))
    folder.chmod(0o755)
    server = EmbeddedPostgres(folder / "pg", POSTGRES)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        if base is None:
            shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def stand(
    zygote: Zygote,
    dsn: str,
    log: Path,
    *,
    seed: int = 1,
    apis: int = 2,
    workers: int = 2,
    share: float = 0.0,
    over: str = "redis",
    constants: Mapping[str, float] | None = None,
) -> AsyncIterator[Stand]:
    """Run everything on a database while the block lasts.

    `share` of the requests through the bad networks meets with a mishap; hints travel `over` redis or postgres.
    Programs have other `constants`, by module and name.
    """
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(running_redis())
        env = {
            "DATABASE_URL": dsn,
            "BROADCAST_URL": redis.url if over == "redis" else dsn,
            "FLEETGRAPH_OPERATOR_TOKEN": TOKEN,
            "FLEETGRAPH_LOG_LEVEL": "warning",
            "FLEETGRAPH_POOL_SIZE": "8",
            CONSTANTS: json.dumps(constants or {}),
        }
        ports = [free_port() for _ in range(apis)]
        networks = [
            await stack.enter_async_context(bad_network(port, random.Random(f"{seed} {i}"), share))  # noqa: S311
            for i, port in enumerate(ports)
        ]
        serve = ("serve", "--no-reconcile")
        made = Stand(
            dsn,
            redis,
            [Program(serve, {**env, "FLEETGRAPH_PORT": str(port)}, zygote, log) for port in ports],
            [Program(("worker",), env, zygote, log) for _ in range(workers)],
            networks,
            ports,
        )
        programs = (*made.apis, *made.workers)
        for program in programs:
            program.start()
            stack.callback(program.kill)
        await made.ready()
        async with background(*(program.keep() for program in programs)):
            yield made


async def kill_backend(process: int) -> None:
    """Kill a process of PostgreSQL with SIGKILL, upon which PostgreSQL ends all others and recovers."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
