"""One run: a PostgreSQL of its own, and the sides one after another; all of it ends with the run."""

import os
import platform
import resource
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import psutil

from bench.feeding.figures import Seen, SideSeen
from bench.feeding.measure import Meters, Plan
from bench.feeding.sides import Kind, make_fleet, serving
from bench.reading.peer import installing, version
from bench.stand.errors import CannotMeasure
from bench.stand.postgres import OwnPostgres, own_postgres, scratch_folder
from bench.stand.progress import say
from bench.stand.talk import helper

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
        postgres = stack.enter_context(own_postgres(folder))
        sides = {str(kind): see(kind, plan, postgres, folder) for kind in kinds}
    return Seen(setting, sides)


def see(kind: Kind, plan: Plan, postgres: OwnPostgres, folder: Path) -> SideSeen:
    """Measure one side on a database of its own, which is dropped afterwards."""
    say(f"starting {kind} …")
    name = f"feed_{kind}"
    postgres.execute(f"create database {name}")
    try:
        fleet = make_fleet(postgres.dsn(name), kind)
        with (
            serving(kind, fleet, folder) as side,
            helper("bench.feeding.writer", folder / "writer.log", fleet.dsn, fleet.tenant_id) as writer,
        ):
            return Meters(side, plan, folder, postgres.postmaster.pid, writer).seen()
    finally:
        postgres.execute(f"drop database {name} with (force)")


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
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "busy": round(psutil.cpu_percent(1.0) / 100, 2),
        **({"postgraphile": version()} if Kind.POSTGRAPHILE in kinds else {}),
    }
