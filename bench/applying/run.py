"""One run: a PostgreSQL of its own, a reported fleet of each size, and both sides on copies of it."""

import asyncio
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.applying.figures import FLOOR, OURS, Figure, Seen, figure_of
from bench.applying.fleet import GPUS, report_fleet
from bench.applying.meter import Spent
from bench.applying.rows import checksums
from bench.stand.errors import CannotMeasure
from bench.stand.postgres import OwnPostgres, own_postgres, scratch_folder
from bench.stand.processes import output_of
from bench.stand.progress import say

_ROOT: Final = Path(__file__).parents[2]
_SIDE_SECONDS_MAX: Final = 1800


class Run:
    """What runs, and where."""

    def __init__(self, postgres: OwnPostgres) -> None:
        self._postgres = postgres

    def see(self, nodes: int, rounds: int) -> tuple[dict[str, Figure], float]:
        """Measure both sides at a size; returns their figures, and what reporting a node took in milliseconds."""
        say(f"reporting {nodes:,} nodes …")
        reported = f"reported_{nodes}"
        with self._database(reported):
            reporting_ms = 1000 * report_fleet(self._postgres.dsn(reported), nodes) / nodes
            seen = [self._round(reported, nodes) for _ in range(rounds)]
        sides = {side: figure_of([each[side] for each in seen], nodes) for side in (OURS, FLOOR)}
        return sides, reporting_ms

    def _round(self, reported: str, nodes: int) -> dict[str, Spent]:
        with self._database("ours", reported) as ours, self._database("floor", reported) as floor:
            # Neither the checkpoint of the load nor that of the copies shall fall into a measurement.
            self._postgres.execute("checkpoint")
            say(f"applying {nodes:,} nodes …")
            spent = {OURS: self._side("ours", ours)}
            self._postgres.execute("checkpoint")
            say("writing the same rows …")
            spent[FLOOR] = self._side("floor", ours, floor)
            check_equal(asyncio.run(checksums(ours)), asyncio.run(checksums(floor)))
            by_node = {side: 1000 * each.wall / nodes for side, each in spent.items()}
            say("by node: " + ", ".join(f"{side} {ms:.2f} ms" for side, ms in by_node.items()))
            return spent

    def _side(self, name: str, *dsns: str) -> Spent:
        command = (sys.executable, "-m", f"bench.applying.{name}", *dsns, str(self._postgres.postmaster.pid))
        return Spent(**json.loads(output_of(command, cwd=_ROOT, seconds_max=_SIDE_SECONDS_MAX).splitlines()[-1]))

    @contextmanager
    def _database(self, name: str, template: str = "template1") -> Iterator[str]:
        self._postgres.execute(f"create database {name} template {template} strategy file_copy")
        try:
            yield self._postgres.dsn(name)
        finally:
            self._postgres.execute(f"drop database {name} with (force)")


def measured(compared: int, rounds: Mapping[int, int]) -> Seen:
    """Measure fleets of some sizes in so many rounds each; the sides are compared at one of them.

    Raises CannotMeasure.
    """
    found, reporting_ms = {}, {}
    with ExitStack() as stack:
        run = Run(stack.enter_context(own_postgres(stack.enter_context(scratch_folder("apply")))))
        for nodes, times in rounds.items():
            found[nodes], reporting_ms[nodes] = run.see(nodes, times)
    return Seen(_setting(), compared, found, reporting_ms)


def check_equal(ours: Mapping[str, str], floor: Mapping[str, str]) -> None:
    """Raise CannotMeasure when the checksum of a table differs."""
    if differing := {name: (ours[name], floor[name]) for name in ours if ours[name] != floor[name]}:
        raise CannotMeasure(f"the floor's rows are not ours: {differing}")


def _setting() -> dict[str, Any]:
    return {"gpus_per_node": GPUS, "cores": os.cpu_count(), "machine": platform.machine()}
