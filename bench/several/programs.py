"""The programs: API processes and workers on one PostgreSQL, and Redis where hints go over it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from bench.stand.errors import CannotMeasure
from bench.stand.postgres import own_postgres, scratch_folder
from bench.stand.processes import end_of, free_port, output_of, running, wait_until_listening
from bench.stand.progress import say
from tests.faults.stand import TOKEN

API_PROCESSES: Final = 3
WORKERS: Final = 2
_WORKS: Final = "Reconciling"
"""A worker says so when it begins."""
_START_SECONDS_MAX: Final = 60
_INSTALL_SECONDS_MAX: Final = 300
_BIN: Final = Path(sys.executable).parent
_HERE: Final = Path(__file__).parents[2]


@dataclass(slots=True)
class Programs:
    """All that runs; what is started later ends with the others."""

    dsn: str
    ports: list[int]
    _env: dict[str, str]
    _folder: Path
    _stack: ExitStack
    apis: dict[int, psutil.Process] = field(default_factory=dict)
    """By port."""
    workers: list[psutil.Process] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    def start_api(self, port: int) -> None:
        """Start an API process on a port, and wait until it listens."""
        process, log = self._start("serve", "--no-reconcile", FLEETGRAPH_PORT=str(port))
        wait_until_listening(process, port, log)
        self.apis[port] = process

    def start_worker(self) -> None:
        """Start a worker, and wait until it works; raises CannotMeasure."""
        worker, log = self._start("worker")
        until = time.monotonic() + _START_SECONDS_MAX
        while _WORKS not in log.read_text():
            if time.monotonic() > until:
                raise CannotMeasure(f"a worker did not start:\n{end_of(log)}")
            time.sleep(0.05)
        self.workers.append(worker)

    def simulate(self, nodes: int) -> None:
        """Have that many made-up agents report once, and wait until all of it is applied; raises CannotMeasure."""
        address = f"http://127.0.0.1:{self.ports[0]}"
        arguments = ("--nodes", str(nodes), "--once", "--server", address, "--token", TOKEN)
        output_of([_BIN / "fleetgraph-agent", "simulate", *arguments], cwd=_HERE, seconds_max=300)

    def _start(self, *arguments: str, **env: str) -> tuple[psutil.Process, Path]:
        log = self._folder / f"{arguments[0]}-{len(self.logs)}.log"
        self.logs.append(log)
        command = [_BIN / "fleetgraph", *arguments]
        return self._stack.enter_context(running(command, log, {**self._env, **env}, _HERE)), log


@contextmanager
def all_programs(over: str) -> Iterator[Programs]:
    """Run everything while the block lasts, with hints over `redis` or `postgres`; raises CannotMeasure."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("many"))
        dsn = stack.enter_context(own_postgres(folder)).dsn("fleetgraph")
        url = stack.enter_context(_redis(folder)) if over == "redis" else dsn
        env = {"DATABASE_URL": dsn, "BROADCAST_URL": url, "FLEETGRAPH_OPERATOR_TOKEN": TOKEN}
        env["FLEETGRAPH_LOG_LEVEL"] = "warning"
        programs = Programs(dsn, [free_port() for _ in range(API_PROCESSES)], env, folder, stack)
        say(f"starting {API_PROCESSES} API processes and {WORKERS} workers …")
        for port in programs.ports:
            programs.start_api(port)
        for _ in range(WORKERS):
            programs.start_worker()
        yield programs


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    program, port = _redis_program(), free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    log = folder / "redis.log"
    say("starting Redis …")
    with running(command, log, {}, folder) as process:
        wait_until_listening(process, port, log)
        yield f"redis://127.0.0.1:{port}"


def _redis_program() -> str:
    """Return redis-server, installed from Debian's packages where it is missing and this may be done."""
    found = shutil.which("redis-server")
    if found:
        return found
    install = shutil.which("apt-get")
    if os.geteuid() != 0 or install is None:
        raise CannotMeasure("there is no redis-server: install Debian's package of that name, or use --over postgres")
    say("installing Debian's redis-server …")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "redis-server"]):
        subprocess.run([install, *arguments], env=env, timeout=_INSTALL_SECONDS_MAX, capture_output=True, check=False)  # noqa: S603
    found = shutil.which("redis-server")
    if found is None:
        raise CannotMeasure("redis-server could not be installed: use --over postgres")
    return found
