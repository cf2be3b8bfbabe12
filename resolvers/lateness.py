"""How far behind a process is, in seconds: the longest of what its work waits for."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from db.database import Database
from domain.admission import BEHIND_SECONDS_MAX, Work
from resolvers.group_commit import GroupCommit
from resolvers.reports import Reports

TICK_SECONDS: Final = 0.1
_TICKS: Final = 5
QUEUED_MAX: Final = 50_000
"""Entries that wait to be written; with more than that nothing else is let in."""
QUEUED_BYTES_MAX: Final = 128 * 2**20
"""Of their contents; with more than that no section is let in."""


class LoopLag:
    """How late the event loop is, measured while `run` runs."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque([0.0] * _TICKS, _TICKS)

    @property
    def seconds(self) -> float:
        """The least of the last ticks' delays: one long turn is no overload, a row of them is."""
        return min(self._lags)

    async def run(self) -> None:
        """Measure for ever."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self._lags.append(max(0.0, loop.time() - due))


def behind(lag: LoopLag, database: Database, reports: Reports) -> Callable[[], float]:
    """Return what tells how far behind the process is: its loop, its groups, and its wait for a connection."""
    groups: tuple[GroupCommit[object, object], ...] = (reports.heartbeats, reports.statuses, reports.sections)  # type: ignore[assignment]

    seen_at, seen = float("-inf"), 0.0

    def seconds() -> float:
        nonlocal seen_at, seen
        now = asyncio.get_running_loop().time()
        if now != seen_at:  # asked for each entry of a batch, within one turn of the loop
            seen_at, seen = now, looked(now)
        return seen

    def looked(now: float) -> float:
        if sum(group.queued for group in groups) > QUEUED_MAX:
            return float("inf")
        too_large = sum(group.queued_bytes for group in groups) > QUEUED_BYTES_MAX
        full = BEHIND_SECONDS_MAX[Work.SECTIONS] if too_large else 0.0
        return max(full, lag.seconds, database.waited_seconds(now), *(group.waited_seconds(now) for group in groups))

    return seconds
