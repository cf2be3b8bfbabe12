"""What was measured on the way: seconds after an answer until every process's subscriber was told."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Figures:
    """In seconds, and how much was told."""

    label_to_all_clients: list[float] = field(default_factory=list)
    report_to_applied: list[float] = field(default_factory=list)
    after_a_worker_was_killed: list[float] = field(default_factory=list)
    while_a_worker_is_stopped: list[float] = field(default_factory=list)
    events: int = 0
    connections: int = 0
    """Of the subscriber that went round."""

    def document(self) -> dict[str, object]:
        """Return them as JSON."""
        return {
            "figures": {
                **_spread("label_to_all_clients", self.label_to_all_clients),
                **_spread("report_to_applied_and_told", self.report_to_applied),
                "after_a_worker_was_killed_ms": [_ms(each) for each in self.after_a_worker_was_killed],
                "while_a_worker_is_stopped_ms": [_ms(each) for each in self.while_a_worker_is_stopped],
                "events": self.events,
                "connections_of_the_wanderer": self.connections,
            },
            "ratios": {},
        }


def _spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {
        f"{name}_p50_ms": _ms(statistics.median(seconds)),
        f"{name}_p95_ms": _ms(statistics.quantiles(seconds, n=20)[-1]),
        f"{name}_max_ms": _ms(max(seconds)),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)
