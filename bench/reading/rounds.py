"""What is made of several rounds of one load: medians, as the machine is shared."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the load against one side, with the CPU time it took."""

    requests: int
    seconds: float
    p50_ms: float
    p95_ms: float
    server_cpu_seconds: float
    database_cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A side's numbers for one request."""

    requests_per_second: float
    p50_ms: float
    p95_ms: float
    server_cpu_ms: float
    database_cpu_ms: float
    rounds: int


def figure_of(rounds: Sequence[Round]) -> Figure:
    """Return the medians of the rounds; CPU time is that of all of them, by request."""
    requests = sum(each.requests for each in rounds)
    return Figure(
        requests_per_second=median(each.requests / each.seconds for each in rounds),
        p50_ms=median(each.p50_ms for each in rounds),
        p95_ms=median(each.p95_ms for each in rounds),
        server_cpu_ms=1000 * sum(each.server_cpu_seconds for each in rounds) / requests,
        database_cpu_ms=1000 * sum(each.database_cpu_seconds for each in rounds) / requests,
        rounds=len(rounds),
    )


def in_turn(sides: Sequence[_T], number: int) -> list[_T]:
    """Return the order of one round: each side comes first, second, … equally often."""
    start = number % len(sides) if sides else 0
    return [*sides[start:], *sides[:start]]
