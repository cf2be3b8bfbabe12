"""Looking at the hardware anew after faults: soon, seldom in a storm, ever more seldom while a GPU's processor hangs.

Source: rules 2 and 16 ("The agent never calls NVML in a tight loop after a GSP timeout").
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

import structlog

from agent.failures import AgentFailure

GSP_TIMEOUTS: Final = frozenset({119, 120})
_SETTLES_MAX: Final = 5

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: from a fault to the look, between looks at least, and at most where a hanging GPU widens that."""

    settle: float = 2.0
    gap: float = 30.0
    gap_max: float = 960.0


class Looks:
    """Collects the inventory after faults, through `refresh`, which returns when the server has it."""

    def __init__(
        self,
        refresh: Callable[[], Awaitable[object]],
        pace: Pace | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._refresh = refresh
        self._pace = pace or Pace()
        self._sleep = sleep
        self._asked = asyncio.Event()
        self._hangs = False

    def ask(self, codes: Collection[int]) -> None:
        """Have the hardware looked at because of faults of these codes."""
        self._hangs = self._hangs or not GSP_TIMEOUTS.isdisjoint(codes)
        self._asked.set()

    async def run(self) -> None:
        """Look for ever."""
        pace = self._pace
        gap = pace.gap
        while True:
            await self._asked.wait()
            await self._settle()
            hangs, self._hangs = self._hangs, False
            gap = min(2 * gap, pace.gap_max) if hangs else pace.gap
            try:
                await self._refresh()
            except AgentFailure as failure:
                _log.warning("the inventory after a fault was not taken", reason=str(failure))
            await self._sleep(gap)

    async def _settle(self) -> None:
        """Wait until nothing more comes: a fault seldom comes alone."""
        for _ in range(_SETTLES_MAX):
            self._asked.clear()
            await self._sleep(self._pace.settle)
            if not self._asked.is_set():
                return
