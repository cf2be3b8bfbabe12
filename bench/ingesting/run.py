"""One run: a PostgreSQL of its own, reported nodes, and both sides in turn."""

import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import Any, Final

import psutil

from bench.applying.fleet import GPUS, report_fleet
from bench.ingesting.figures import FLOOR, OURS, Figure, Seen
from bench.ingesting.fleet import TOKEN, add_token, forget_reports, write_heartbeats, write_sections
from bench.stand.postgres import OwnPostgres, own_postgres, scratch_folder
from bench.stand.processes import cpu_seconds, free_port, output_of, running, wait_until_listening
from bench.stand.progress import say

POOL_SIZE: Final = 8
_ROOT: Final = Path(__file__).parents[2]
_SIDE_SECONDS_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of load: so many nodes in a request, and so many requests at once."""

    name: str
    batch: int
    connections: int


HEARTBEATS: Final = (
    Kind("heartbeats_batched", batch=250, connections=16),
    Kind("heartbeats_single", batch=1, connections=256),
)
SECTIONS: Final = (
    Kind("sections_batched", batch=50, connections=4),
    Kind("sections_single", batch=1, connections=64),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many nodes, and how many rounds of so many seconds."""

    nodes: int
    rounds: int
    seconds: int


class Run:
    """What runs, and where."""

    def __init__(self, postgres: OwnPostgres, folder: Path, plan: Plan) -> None:
        self._postgres = postgres
        self._folder = folder
        self._plan = plan

    def see(self) -> dict[str, dict[str, Figure]]:
        """Measure all kinds."""
        say(f"reporting {self._plan.nodes:,} nodes …")
        found = {}
        with self._database("reported") as reported:
            report_fleet(reported, self._plan.nodes)
            add_token(reported)
            for kind in HEARTBEATS:
                asyncio.run(write_heartbeats(reported, self._file(kind), kind.batch))
                rounds = [self._heartbeats(kind, reported) for _ in range(self._plan.rounds)]
                found[kind.name] = _told(kind, _medians(rounds))
            with self._database("bare", "reported") as bare:
                forget_reports(bare)
                for kind in SECTIONS:
                    asyncio.run(write_sections(reported, self._file(kind), kind.batch))
                    rounds = [self._sections(kind, reported) for _ in range(self._plan.rounds)]
                    found[kind.name] = _told(kind, _medians(rounds))
        return found

    def _heartbeats(self, kind: Kind, reported: str) -> dict[str, Figure]:
        with self._server(reported) as (server, port):
            self._load(kind, port, 1)
            self._tidy()
            ours = self._measured(kind, server, lambda: self._load(kind, port, self._plan.seconds))
        self._tidy()
        command = ("heartbeats", reported, kind.batch, POOL_SIZE, self._plan.seconds)
        return {OURS: ours, FLOOR: self._floor(kind, command)}

    def _sections(self, kind: Kind, reported: str) -> dict[str, Figure]:
        with self._database("ours", "bare") as dsn, self._server(dsn) as (server, port):
            self._postgres.execute("checkpoint")
            ours = self._measured(kind, server, lambda: self._load(kind, port, 0))
        with self._database("floor", "bare") as dsn:
            self._postgres.execute("checkpoint")
            return {OURS: ours, FLOOR: self._floor(kind, ("sections", reported, dsn, kind.batch, POOL_SIZE))}

    def _tidy(self) -> None:
        """Leave no dead rows of one side to the other."""
        self._postgres.execute("vacuum (analyze) node_liveness, node_inventory", "reported")
        self._postgres.execute("checkpoint")

    def _load(self, kind: Kind, port: int, seconds: int) -> dict[str, Any]:
        command = (port, TOKEN, self._file(kind), kind.connections, seconds)
        return self._program("load", command)

    def _measured(self, kind: Kind, server: psutil.Process, load: Any) -> Figure:  # noqa: ANN401 - what loads it
        say(f"{kind.name} …")
        before = cpu_seconds([server]), self._database_cpu()
        seen = load()
        reports = seen["requests"] * kind.batch
        return Figure(
            reports_per_second=reports / seen["seconds"],
            side_cpu_ms=1000 * (cpu_seconds([server]) - before[0]) / reports,
            database_cpu_ms=1000 * (self._database_cpu() - before[1]) / reports,
            p50_ms=seen["p50_ms"],
            p95_ms=seen["p95_ms"],
            p99_ms=seen["p99_ms"],
        )

    def _floor(self, kind: Kind, command: Sequence[object]) -> Figure:
        say(f"{kind.name}: the floor …")
        before = self._database_cpu()
        used = time.process_time() + _children_seconds()
        seen = self._program("floor", command)
        nodes = seen["nodes"]
        return Figure(
            reports_per_second=nodes / seen["seconds"],
            side_cpu_ms=1000 * (time.process_time() + _children_seconds() - used) / nodes,
            database_cpu_ms=1000 * (self._database_cpu() - before) / nodes,
        )

    def _program(self, name: str, arguments: Sequence[object]) -> dict[str, Any]:
        command = (sys.executable, "-m", f"bench.ingesting.{name}", *map(str, arguments))
        seen: dict[str, Any] = json.loads(output_of(command, cwd=_ROOT, seconds_max=_SIDE_SECONDS_MAX).splitlines()[-1])
        return seen

    def _database_cpu(self) -> float:
        times = self._postgres.postmaster.cpu_times()
        return times.children_user + times.children_system + cpu_seconds(self._postgres.postmaster.children())

    def _file(self, kind: Kind) -> Path:
        return self._folder / f"{kind.name}.jsonl"

    @contextmanager
    def _server(self, dsn: str) -> Iterator[tuple[psutil.Process, int]]:
        port = free_port()
        log = self._folder / f"server-{port}.log"
        # As beside a worker: nothing else shall write to what is compared; and who loads it is one client for all.
        command = (Path(sys.executable).with_name("fleetgraph"), "serve", "--no-reconcile")
        env = {
            "DATABASE_URL": dsn,
            "FLEETGRAPH_POOL_SIZE": str(POOL_SIZE),
            "FLEETGRAPH_PORT": str(port),
            "FLEETGRAPH_LOG_LEVEL": "warning",
            "FLEETGRAPH_NODE_RATE": "0",
            "FLEETGRAPH_TENANT_RATE": "0",
        }
        with running(command, log, env, _ROOT) as process:
            wait_until_listening(process, port, log)
            yield process, port

    @contextmanager
    def _database(self, name: str, template: str = "template1") -> Iterator[str]:
        self._postgres.execute(f"create database {name} template {template} strategy file_copy")
        try:
            yield self._postgres.dsn(name)
        finally:
            self._postgres.execute(f"drop database {name} with (force)")


def measured(plan: Plan) -> Seen:
    """Run the whole bench; raises CannotMeasure."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("ingest"))
        run = Run(stack.enter_context(own_postgres(folder)), folder, plan)
        kinds = run.see()
    setting = {
        "nodes": plan.nodes,
        "gpus_per_node": GPUS,
        "pool_size": POOL_SIZE,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
    }
    return Seen(setting, kinds)


def _told(kind: Kind, sides: dict[str, Figure]) -> dict[str, Figure]:
    say(", ".join(f"{kind.name} {side} {figure.reports_per_second:,.0f}/s" for side, figure in sides.items()))
    return sides


def _children_seconds() -> float:
    times = psutil.Process().cpu_times()
    return times.children_user + times.children_system


def _medians(rounds: Sequence[dict[str, Figure]]) -> dict[str, Figure]:
    """Return of each side the round whose rate is the median."""
    found = {}
    for side in rounds[0]:
        by_rate = {each[side].reports_per_second: each[side] for each in rounds}
        found[side] = by_rate[median_low(by_rate)]
    return found
