"""Results of events, made once for all who select the same of them.

A result shows the fleet as it was when it was read. Who was shown a later state already is not taken back: for them,
and for who comes after them, it is made anew.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import Any, Final

from db.together import take_note

BYTES_MAX: Final = 16 * 2**20
"""What is kept of results, in bytes of their JSON."""
_ENTRY_BYTES: Final = 700
"""What keeping a result takes besides its JSON."""
PIECE_BYTES: Final = 65_536
"""What of a batch is made, and held for a client that takes its time, before any of it is sent; or one result."""
SECONDS_MAX: Final = 5.0
"""How long one is kept: who comes later is shown what is then."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made, and how many bytes are kept by keeping it; zero for what must not be kept."""

    value: Any
    bytes: int


Make = Callable[[Sequence[int]], Awaitable[Sequence[Made]]]
"""Makes the results of the first of these places together, on one view of the data; of one at least."""


@dataclass(frozen=True, slots=True)
class _Result:
    """What was made between two turns: what began at a later turn than another ended is not older than that.

    What was made together ended at the same turn, and shows the same state.
    """

    begun: int
    ended: int
    until: float
    made: Made

    def suits(self, shown: "Shown") -> bool:
        """Say whether it is not older than what was shown."""
        return self.begun >= shown.turn or self.ended == shown.turn


@dataclass(slots=True, eq=False)
class Shown:
    """How new the newest of the results is that a subscription was given: the turn at which it ended."""

    turn: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Making:
    """Results that are made together, as somebody asked for them."""

    begun: int
    places: Mapping[Hashable, int]
    task: asyncio.Task[list[_Result]]


class SharedResults:
    """The results of a process, each made once while it is asked for, and kept while there is room."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._turns = count(1)
        self._kept: OrderedDict[Hashable, _Result] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}

    async def results(self, keys: Sequence[Hashable], shown: Shown, make: Make) -> list[Any]:
        """Return the results of the first keys, of one at least, none older than the one before it and what was shown.

        There are no more than make a piece. From the first on that is missing, `make` makes some together, and whoever
        asks for them meanwhile is given them. Raises what `make` raises.
        """
        found: list[_Result] = []
        size, now = 0, asyncio.get_running_loop().time()
        while len(found) < len(keys) and size < PIECE_BYTES:
            place = len(found)
            key = keys[place]
            kept = self._kept.get(key)
            if kept is not None and kept.until > now and kept.suits(shown):
                found.append(kept)
                size += kept.made.bytes
            else:
                making = self._making.get(key)
                if making is None or making.begun < shown.turn:
                    making = self._make(keys, place, make)
                made = await asyncio.shield(making.task)
                first = making.places[key]
                if first >= len(made):
                    self._forget(making)  # it was one of those that were not made
                    continue
                found += _alike(made[first:], list(making.places)[first:], keys[place:])
                size += sum(each.made.bytes for each in found[place:])
            shown.turn = found[-1].ended
        return [each.made.value for each in found]

    def _make(self, keys: Sequence[Hashable], first: int, make: Make) -> _Making:
        begun = next(self._turns)
        # A task of its own: who asked first may leave while others wait.
        task = asyncio.create_task(self._made(keys, first, begun, make))
        task.add_done_callback(take_note)
        making = _Making(begun, {key: place for place, key in enumerate(keys[first:])}, task)
        for key in making.places:
            self._making[key] = making
        task.add_done_callback(lambda _: self._forget(making))
        return making

    async def _made(self, keys: Sequence[Hashable], first: int, begun: int, make: Make) -> list[_Result]:
        until = asyncio.get_running_loop().time() + SECONDS_MAX
        made = await make(range(first, len(keys)))
        ended = next(self._turns)
        results = [_Result(begun, ended, until, each) for each in made]
        for key, result in zip(keys[first:], results, strict=False):
            self._keep(key, result)
        return results

    def _forget(self, making: _Making) -> None:
        for key in making.places:
            if self._making.get(key) is making:
                del self._making[key]

    def _keep(self, key: Hashable, result: _Result) -> None:
        before = self._kept.get(key)
        if not result.made.bytes or (before is not None and before.begun > result.begun):
            return
        if before is not None:
            self._drop(key)
        self._kept[key] = result
        self._bytes += result.made.bytes + _ENTRY_BYTES
        now = asyncio.get_running_loop().time()
        oldest = next(iter(self._kept))
        while self._bytes > self._bytes_max or self._kept[oldest].until <= now:
            self._drop(oldest)
            if not self._kept:
                break
            oldest = next(iter(self._kept))

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).made.bytes + _ENTRY_BYTES


def _alike(results: Sequence[_Result], keys: Sequence[Hashable], asked: Sequence[Hashable]) -> list[_Result]:
    """Return the results of those keys that were asked for in the same order, from the first on."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(keys, asked, strict=False))
    return [result for result, _ in zip(results, same, strict=False)]
