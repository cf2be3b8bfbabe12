"""Results of events, made once for all who select the same of them.

A result shows the fleet as it was when it was read. Who was shown a later state already is not taken back: for them,
and for who comes after them, it is made anew.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

BYTES_MAX: Final = 16 * 2**20
"""What is kept of results, in bytes of their JSON."""
SECONDS_MAX: Final = 5.0
"""How long one is kept: who comes later is shown what is then."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made, and how many bytes are kept by keeping it; zero for what must not be kept."""

    value: Any
    bytes: int


@dataclass(frozen=True, slots=True)
class _Kept:
    turn: int
    until: float
    made: Made


@dataclass(slots=True, eq=False)
class Shown:
    """How new the newest of the results is that a subscription was given."""

    turn: int = 0


class SharedResults:
    """The results of a process, each made once while it is asked for, and kept while there is room."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._turns = count(1)
        self._made: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._making: dict[Hashable, tuple[int, asyncio.Task[Made]]] = {}

    def kept(self, key: Hashable, shown: Shown) -> Made | None:
        """Return what is kept of a key, if it is not older than what was shown."""
        kept = self._made.get(key)
        if kept is None or kept.turn < shown.turn or kept.until <= asyncio.get_running_loop().time():
            return None
        shown.turn = kept.turn
        return kept.made

    async def result(self, key: Hashable, shown: Shown, make: Callable[[], Awaitable[Made]]) -> Any:  # noqa: ANN401 - whatever is made
        """Return the result of a key, not older than what was shown; raises what `make` raises."""
        made = self.kept(key, shown) or await self._new(key, shown, make)
        return made.value

    async def _new(self, key: Hashable, shown: Shown, make: Callable[[], Awaitable[Made]]) -> Made:
        under_way = self._making.get(key)
        if under_way is None or under_way[0] < shown.turn:
            # A task of its own: who asked first may leave while others wait.
            turn = next(self._turns)
            task = asyncio.create_task(self._make(key, turn, make))
            task.add_done_callback(_heard)
            under_way = self._making[key] = turn, task
        turn, task = under_way
        made = await asyncio.shield(task)
        shown.turn = turn
        return made

    async def _make(self, key: Hashable, turn: int, make: Callable[[], Awaitable[Made]]) -> Made:
        begun = asyncio.get_running_loop().time()
        try:
            made = await make()
        finally:
            if self._making.get(key, (0,))[0] == turn:
                del self._making[key]
        before = self._made.get(key)
        if made.bytes and (before is None or before.turn < turn):
            self._keep(key, _Kept(turn, begun + SECONDS_MAX, made))
        return made

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        before = self._made.pop(key, None)
        self._bytes += kept.made.bytes - (before.made.bytes if before else 0)
        self._made[key] = kept
        while self._bytes > self._bytes_max:
            _, oldest = self._made.popitem(last=False)
            self._bytes -= oldest.made.bytes


def _heard(task: asyncio.Task[Made]) -> None:
    """Take note of what went wrong: all who asked may have left."""
    if not task.cancelled():
        task.exception()
