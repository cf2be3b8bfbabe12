"""Turns: so many do something at once, so many more wait for it, and whoever else comes is turned away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from domain.admission import OVERLOAD_RETRY_SECONDS, TurnedAway, Why, Work

AT_ONCE: Final = 8
WAITING_MAX: Final = 500


class Turns:
    """Turns of a kind of work that takes a transaction for each entry.

    How long the first of them has waited tells too late that there are too many: those behind it are let in already,
    and would have every connection of the pool before any heartbeat.
    """

    def __init__(self, work: Work, *, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX) -> None:
        self._work = work
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0
        self._waiting_max = waiting_max

    def shed(self) -> None:
        """Raise TurnedAway when too many wait."""
        if self._waiting >= self._waiting_max:
            raise TurnedAway(self._work, Why.OVERLOAD, OVERLOAD_RETRY_SECONDS)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Take a turn for the block, in the order of asking; raises TurnedAway."""
        self.shed()
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
