"""What the bench answers: figures by request and side, and ratios by name, ours over the other."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.reading.asked import FAR_PAGE, FIRST_PAGE
from bench.reading.rounds import Figure

OURS: Final = "compiled"
OTHERS: Final = ("postgraphile", "floor", "plain")
_DIGITS: Final = 3

Table = Mapping[str, Mapping[str, Figure]]
"""Figures by request, then by side or by number of nodes."""


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one run saw: reads by side, growth by number of nodes, peak memory by side in MiB."""

    setting: Mapping[str, Any]
    reads: Table
    growth: Table
    peak_mib: Mapping[str, float]

    def ratios(self) -> dict[str, float]:
        """Return the ratios: of requests a second against other sides, of p50 for pages and growth, of memory."""
        return {**_against_others(self.reads), **_far_page(self.reads), **_growth(self.growth), **_of(self.peak_mib)}

    def document(self) -> dict[str, Any]:
        """Return the JSON object that is printed."""
        figures = {
            "setting": dict(self.setting),
            "reads": _rounded(self.reads),
            "growth": _rounded(self.growth),
            "peak_mib": {side: round(mib, 1) for side, mib in self.peak_mib.items()},
        }
        return {"figures": figures, "ratios": {name: round(ratio, _DIGITS) for name, ratio in self.ratios().items()}}


def _against_others(reads: Table) -> dict[str, float]:
    return {
        f"{name}_vs_{other}": sides[OURS].requests_per_second / sides[other].requests_per_second
        for name, sides in reads.items()
        for other in OTHERS
        if OURS in sides and other in sides
    }


def _far_page(reads: Table) -> dict[str, float]:
    near, far = (reads.get(name, {}).get(OURS) for name in (FIRST_PAGE, FAR_PAGE))
    return {f"{FAR_PAGE}_vs_{FIRST_PAGE}": far.p50_ms / near.p50_ms} if near and far else {}


def _growth(growth: Table) -> dict[str, float]:
    found = {}
    for name, sizes in growth.items():
        if not sizes:
            continue
        smallest, *larger = sorted(sizes, key=int)
        found.update(
            {f"growth_{name}_{nodes}_vs_{smallest}": sizes[nodes].p50_ms / sizes[smallest].p50_ms for nodes in larger}
        )
    return found


def _of(peak_mib: Mapping[str, float]) -> dict[str, float]:
    return {f"memory_vs_{other}": peak_mib[OURS] / peak_mib[other] for other in OTHERS if other in peak_mib}


def _rounded(table: Table) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {
            column: {key: round(value, _DIGITS) for key, value in asdict(figure).items()}
            for column, figure in columns.items()
        }
        for name, columns in table.items()
    }
