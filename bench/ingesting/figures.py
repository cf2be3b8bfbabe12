"""What the bench answers: reports a second by kind and side, and ratios, ours over the floor's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

OURS: Final = "ours"
FLOOR: Final = "floor"
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """What a side did: nodes' reports a second, CPU milliseconds a report, and what a request took (ours)."""

    reports_per_second: float
    side_cpu_ms: float
    database_cpu_ms: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one run saw: by kind of report, each side's figure."""

    setting: Mapping[str, Any]
    kinds: Mapping[str, Mapping[str, Figure]]

    def ratios(self) -> dict[str, float]:
        """Return by kind the rate of ours over the floor's."""
        return {
            f"{kind}_vs_floor": sides[OURS].reports_per_second / sides[FLOOR].reports_per_second
            for kind, sides in self.kinds.items()
        }

    def document(self) -> dict[str, Any]:
        """Return the JSON object that is printed."""
        figures = {
            kind: {side: _rounded(figure) for side, figure in sides.items()} for kind, sides in self.kinds.items()
        }
        ratios = {name: round(ratio, _DIGITS) for name, ratio in self.ratios().items()}
        return {"figures": {"setting": dict(self.setting), **figures}, "ratios": ratios}


def _rounded(figure: Figure) -> dict[str, float]:
    return {name: round(value, _DIGITS) for name, value in asdict(figure).items() if value is not None}
