"""How long events took, in milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latency:
    """From commit to client."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    count: int


def latency_of(nanoseconds: Sequence[int]) -> Latency:
    """Return quantiles of at least one wait: the smallest that so many of them do not exceed."""
    ordered = sorted(nanoseconds)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6

    return Latency(at(0.50), at(0.95), at(0.99), ordered[-1] / 1e6, len(ordered))
