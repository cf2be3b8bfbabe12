"""What the bench answers: what a node costs, by size of the fleet and side, and ratios, ours over the other's."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from statistics import median
from typing import Any, Final

from bench.applying.meter import Spent

OURS: Final = "ours"
FLOOR: Final = "floor"
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """What one node costs a side, in milliseconds: by the clock, and of CPU time."""

    ms: float
    client_cpu_ms: float
    database_cpu_ms: float
    rounds: int

    @property
    def cpu_ms(self) -> float:
        """The CPU time of both."""
        return self.client_cpu_ms + self.database_cpu_ms


def figure_of(rounds: Sequence[Spent], nodes: int) -> Figure:
    """Return the medians of several rounds by node."""
    return Figure(
        ms=1000 * median(each.wall for each in rounds) / nodes,
        client_cpu_ms=1000 * median(each.client_cpu for each in rounds) / nodes,
        database_cpu_ms=1000 * median(each.database_cpu for each in rounds) / nodes,
        rounds=len(rounds),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one run saw: figures by number of nodes and side, and what reporting a node took in milliseconds."""

    setting: Mapping[str, Any]
    compared: int
    """The size at which the sides are compared."""
    nodes: Mapping[int, Mapping[str, Figure]]
    reporting_ms: Mapping[int, float]

    def ratios(self) -> dict[str, float]:
        """Return the ratios: of time and of CPU time, against the floor and of each size against the smallest."""
        ours, floor = self.nodes[self.compared][OURS], self.nodes[self.compared][FLOOR]
        smallest, *larger = sorted(self.nodes)
        growth = {}
        for side, size in product((OURS, FLOOR), larger):
            here, least = self.nodes[size][side], self.nodes[smallest][side]
            growth[f"growth_{side}_{size}_vs_{smallest}"] = here.ms / least.ms
            growth[f"growth_cpu_{side}_{size}_vs_{smallest}"] = here.cpu_ms / least.cpu_ms
        return {"apply_vs_floor": ours.ms / floor.ms, "apply_cpu_vs_floor": ours.cpu_ms / floor.cpu_ms, **growth}

    def document(self) -> dict[str, Any]:
        """Return the JSON object that is printed."""
        figures = {
            "setting": dict(self.setting),
            "apply": {str(size): {side: _rounded(each) for side, each in sides.items()} for size, sides in self._in()},
            "reporting_ms": {str(size): round(ms, _DIGITS) for size, ms in self.reporting_ms.items()},
        }
        return {"figures": figures, "ratios": {name: round(ratio, _DIGITS) for name, ratio in self.ratios().items()}}

    def _in(self) -> list[tuple[int, Mapping[str, Figure]]]:
        return sorted(self.nodes.items())


def _rounded(figure: Figure) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in asdict(figure).items()}
