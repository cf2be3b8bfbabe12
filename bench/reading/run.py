"""One run: a PostgreSQL of its own, the fleets, the sides, the measurements; all of it ends with the run."""

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench.reading.agreement import check_agreement, far_places
from bench.reading.asked import PAGE, Asked, all_asked, grouped, listed, one
from bench.reading.figures import Seen
from bench.reading.fleet import Fleet, make_fleet
from bench.reading.load import CONNECTIONS, ensure_wrk
from bench.reading.measure import Meter, Plan
from bench.reading.peer import installing, version
from bench.reading.rounds import Figure
from bench.reading.sides import POOL_SIZE, Kind, Side, Started
from bench.stand.postgres import OwnPostgres, own_postgres, scratch_folder
from bench.stand.processes import peak_mib
from bench.stand.progress import say


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many nodes the compared fleet has, and those beside it that show what growth costs."""

    nodes: int
    beside: tuple[int, ...]


class Run:
    """What runs, and where."""

    def __init__(self, started: Started, postgres: OwnPostgres, plan: Plan, meter: Meter) -> None:
        self._started = started
        self._postgres = postgres
        self._plan = plan
        self._meter = meter

    def fleet(self, nodes: int) -> Fleet:
        """Make a fleet in a database of its own."""
        say(f"making {nodes:,} nodes …")
        name = f"reads_{nodes}"
        self._postgres.execute(f"create database {name}")
        return make_fleet(self._postgres.dsn(name), nodes)

    def see(self, fleet: Fleet, beside: Sequence[int], setting: Mapping[str, Any]) -> Seen:
        """Compare the sides on a fleet, and ours with itself on fleets of other sizes."""
        sides = self._started.sides((kind, fleet) for kind in Kind)
        reads = self._reads(fleet, sides)
        peaks = {side.kind.value: peak_mib(side.process) for side in sides}
        if self._plan.late():
            say("leaving out growth: this machine is too busy for a quick run …")
            return Seen(setting, reads, {}, peaks)
        fleets = [fleet, *(self.fleet(nodes) for nodes in beside)]
        ours = [sides[0], *self._started.sides((Kind.COMPILED, other) for other in fleets[1:])]
        return Seen(setting, reads, self._growth(fleets, ours), peaks)

    def _reads(self, fleet: Fleet, sides: Sequence[Side]) -> dict[str, dict[str, Figure]]:
        by_kind = {side.kind: side for side in sides}
        asked = all_asked(fleet, far_places(by_kind[Kind.COMPILED], by_kind[Kind.POSTGRAPHILE]))
        say("comparing answers …")
        for each in asked:
            check_agreement(sides, each)
        found: dict[str, dict[str, Figure]] = {}
        for together in grouped(asked):
            say(f"measuring {', '.join(each.name for each in together)} …")
            turns = [(side, each) for each in together for side in self._taking(sides, each)]
            for (side, each), figure in self._meter.measure(turns).items():
                found.setdefault(each.name, {})[side.kind.value] = figure
        for each in asked:
            # Under load nobody may have begun to answer otherwise.
            check_agreement(self._taking(sides, each), each)
        return found

    def _taking(self, sides: Sequence[Side], asked: Asked) -> list[Side]:
        return [side for side in sides if self._plan.takes(side.kind, asked)]

    def _growth(self, fleets: Sequence[Fleet], ours: Sequence[Side]) -> dict[str, dict[str, Figure]]:
        found = {}
        nodes = {side: fleet.nodes for fleet, side in zip(fleets, ours, strict=True)}
        for each in (listed(PAGE), one(fleets[0])):
            say(f"measuring {each.name} by number of nodes …")
            figures = self._meter.measure([(side, each) for side in ours])
            by_nodes = {nodes[side]: figure for (side, _), figure in figures.items()}
            found[each.name] = {str(size): by_nodes[size] for size in sorted(by_nodes)}
        return found


def measured(sizes: Sizes, plan: Plan) -> Seen:
    """Run the whole bench; raises CannotMeasure."""
    ensure_wrk()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder("reads"))
        wait_for_peer = stack.enter_context(installing(folder))
        postgres = stack.enter_context(own_postgres(folder))
        run = Run(Started(stack, folder), postgres, plan, Meter(plan, folder, postgres.postmaster))
        fleet = run.fleet(sizes.nodes)
        wait_for_peer()
        return run.see(fleet, sizes.beside, _setting(sizes, plan))


def _setting(sizes: Sizes, plan: Plan) -> dict[str, Any]:
    return {
        "nodes": sizes.nodes,
        "connections": CONNECTIONS,
        "pool_size": POOL_SIZE,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "postgraphile": version(),
    }
