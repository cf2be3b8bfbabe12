"""What a span of work took: time on the wall, and CPU time of this process and of PostgreSQL."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from bench.stand.processes import cpu_seconds


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds, of the wall's clock and of CPU time."""

    wall: float
    client_cpu: float
    database_cpu: float


class Meter:
    """Adds up spans; `postmaster` is the first of PostgreSQL's processes."""

    def __init__(self, postmaster: int) -> None:
        self._postmaster = psutil.Process(postmaster)
        self._spent = [0.0, 0.0, 0.0]

    @contextmanager
    def span(self) -> Iterator[None]:
        """Count what the block takes."""
        before = self._now()
        yield
        self._spent = [
            spent + after - began for spent, after, began in zip(self._spent, self._now(), before, strict=True)
        ]

    def spent(self) -> Spent:
        """Return what the spans took so far."""
        return Spent(*self._spent)

    def _now(self) -> tuple[float, float, float]:
        # The postmaster's own time is next to nothing, that of children which have ended is in no other process.
        while True:
            ended = self._ended()
            living = cpu_seconds(self._postmaster.children())
            # A child that ended in between would be in neither.
            if self._ended() == ended:
                return time.monotonic(), time.process_time(), ended + living

    def _ended(self) -> float:
        times = self._postmaster.cpu_times()
        return times.children_user + times.children_system
