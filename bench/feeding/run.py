"""One run: a PostgreSQL of its own, and the sides one after another; all of it ends with the run."""

import os
import platform
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from bench.feeding.figures import Seen, SideSeen
from bench.feeding.measure import Meters, Plan
from bench.feeding.sides import Kind, Side, make_fleet, serving
from bench.feeding.soak import Soaked, SoakPlan, soaked
from bench.reading.peer import installing, version
from bench.stand.errors import CannotMeasure
from bench.stand.postgres import OwnPostgres, own_postgres, scratch_folder
from bench.stand.progress import elapsed, say
from bench.stand.talk import Helper, helper

_BESIDE_SUBSCRIBERS: Final = 200
"""Files that a process has open besides its subscribers' sockets."""


def measured(plan: Plan, kinds: tuple[Kind, ...]) -> Seen:
    """Measure the sides; raises CannotMeasure."""
    _allow_sockets(plan.subscribers + plan.beside + _BESIDE_SUBSCRIBERS)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("feed"))
        if Kind.POSTGRAPHILE in kinds:
            wait_for_peer = stack.enter_context(installing(folder))
            wait_for_peer()
        setting = _setting(plan, kinds)
        stand = Stand(folder, stack.enter_context(own_postgres(folder)))
        sides: dict[str, SideSeen] = {}
        for kind in kinds:
            if sides and elapsed() > plan.begin_seconds_max:
                say(f"leaving out {kind}: this machine is too busy for a quick run …")
                continue
            sides[kind.value] = stand.see(kind, plan)
        return Seen(setting, sides)


def endured(plan: SoakPlan) -> Seen:
    """Soak this server alone; raises CannotMeasure."""
    _allow_sockets(plan.followers + _BESIDE_SUBSCRIBERS)
    with scratch_folder("soak") as folder:
        setting = _machine()
        with own_postgres(folder) as postgres:
            return Seen(setting, {}, Stand(folder, postgres).soak(plan))


@dataclass(frozen=True, slots=True)
class Stand:
    """Where sides are measured: a folder, and a PostgreSQL with what databases begin as."""

    folder: Path
    postgres: OwnPostgres
    template: str = "template1"

    def see(self, kind: Kind, plan: Plan) -> SideSeen:
        """Measure one side."""
        with self._serving(kind) as (side, writer):
            return Meters(side, plan, self.folder, self.postgres.postmaster.pid, writer).seen()

    def soak(self, plan: SoakPlan) -> Soaked:
        """Soak this server."""
        with self._serving(Kind.OURS) as (side, writer):
            return soaked(side, plan, self.folder, writer)

    @contextmanager
    def _serving(self, kind: Kind) -> Iterator[tuple[Side, Helper]]:
        """Run a side on a database of its own, with who commits there; the database is dropped afterwards."""
        say(f"starting {kind} …")
        name = f"feed_{kind}"
        self.postgres.execute(f"create database {name} template {self.template}")
        try:
            fleet = make_fleet(self.postgres.dsn(name), kind)
            log = self.folder / "writer.log"
            with (
                serving(kind, fleet, self.folder) as side,
                helper("bench.feeding.writer", log, fleet.dsn, fleet.tenant_id, kind) as writer,
            ):
                yield side, writer
        finally:
            self.postgres.execute(f"drop database {name} with (force)")


def _allow_sockets(wanted: int) -> None:
    """Let this process and those that it starts have so many files open; raises CannotMeasure."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise CannotMeasure(f"a process may open {hard} files here (ulimit -Hn), and {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _setting(plan: Plan, kinds: tuple[Kind, ...]) -> dict[str, Any]:
    return {
        "subscribers": plan.subscribers,
        "rate": plan.rate,
        "seconds": plan.seconds,
        "drain": plan.drain,
        **_machine(),
        **({"postgraphile": version()} if Kind.POSTGRAPHILE in kinds else {}),
    }


def _machine() -> dict[str, Any]:
    """Say how busy the machine is before anything of the bench is: 1 is all cores."""
    busy = round(psutil.cpu_percent(1.0) / 100, 2)
    return {"cores": os.cpu_count(), "machine": platform.machine(), "busy_before": busy}
