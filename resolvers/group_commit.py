"""Group commit: what requests bring at about the same time is written together, each entry with an answer of its own.

A statement costs a transaction whatever it carries; thousands of nodes that each report by themselves would pay for
thousands. What comes waits a moment for company, or, where all lanes are busy, until one is free: groups grow with the
load.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from db.connections import is_transient
from domain.errors import Broken

Entry = TypeVar("Entry")
Answer = TypeVar("Answer")

WAIT_SECONDS: Final = 0.002
ENTRIES_MAX: Final = 1000
LANES: Final = 4
"""Groups under way at once: one that waits for a locked row holds up a quarter."""
_log = structlog.get_logger("group commit")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a request waits for others while a lane is free, and how large a group grows.

    One request may be larger than any group: it is written alone.
    """

    wait_seconds: float = WAIT_SECONDS
    entries_max: int = ENTRIES_MAX
    bytes_max: int = 8 * 2**20
    lanes: int = LANES


@dataclass(frozen=True, slots=True)
class _Request(Generic[Entry, Answer]):
    entries: Sequence[Entry]
    keys: frozenset[Hashable]
    bytes: int
    at: float
    answered: asyncio.Future[Sequence[Answer | Broken]]


class GroupCommit(Generic[Entry, Answer]):
    """Gathers what concurrent requests submit. `commit` writes entries, of which no two have one key, all or none.

    It returns an answer for each entry, in order. Entries of one key are written in the order in which they came. A
    group that fails by a bug is halved until the entry with the fault stands alone: that one is answered Broken.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Entry]], Awaitable[Sequence[Answer]]],
        key: Callable[[Entry], Hashable],
        *,
        bytes_of: Callable[[Entry], int] = lambda _: 0,
        bounds: Bounds | None = None,
    ) -> None:
        self._commit = commit
        self._key = key
        self._bytes_of = bytes_of
        self._bounds = bounds or Bounds()
        self._waiting: deque[_Request[Entry, Answer]] = deque()
        # Older than all that waits for a lane: passed over for a key that is being written.
        self._passed: deque[_Request[Entry, Answer]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._busy: set[Hashable] = set()
        self.queued = 0
        """Entries that wait to be written."""
        self.queued_bytes = 0
        """Their bytes."""

    def waited_seconds(self, now: float) -> float:
        """Return for how long the first of what waits for a lane has waited, by the event loop's clock.

        What waits for its own key is left out: one node's locked row says nothing of the process.
        """
        return now - self._waiting[0].at if self._waiting else 0.0

    async def submit(self, entries: Sequence[Entry]) -> Sequence[Answer | Broken]:
        """Write entries with those of other requests, and return their answers; raises what says nothing of them."""
        loop = asyncio.get_running_loop()
        keys = frozenset(map(self._key, entries))
        size = sum(map(self._bytes_of, entries))
        request: _Request[Entry, Answer] = _Request(entries, keys, size, loop.time(), loop.create_future())
        self._waiting.append(request)
        self.queued += len(entries)
        self.queued_bytes += size
        if self.queued >= self._bounds.entries_max:
            self._begin()
        elif self._timer is None and len(self._running) < self._bounds.lanes:
            self._timer = loop.call_later(self._bounds.wait_seconds, self._begin)
        return await request.answered

    def _begin(self) -> None:
        """Write what waits, as far as there are lanes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while (self._passed or self._waiting) and len(self._running) < self._bounds.lanes:
            group = self._next_group()
            if not group:
                return
            keys = {key for request in group for key in request.keys}
            self._busy |= keys
            task = asyncio.get_running_loop().create_task(self._write(group))
            self._running.add(task)
            task.add_done_callback(lambda done, keys=keys: self._ended(done, keys))  # type: ignore[misc]

    def _ended(self, task: asyncio.Task[None], keys: set[Hashable]) -> None:
        self._running.discard(task)
        self._busy -= keys
        self._begin()

    def _next_group(self) -> list[_Request[Entry, Answer]]:
        """Take requests from what waits, passing over those with a key that is being written or waits before them."""
        taken: list[_Request[Entry, Answer]] = []
        passed: list[_Request[Entry, Answer]] = []
        held = set(self._busy)
        entries = size = 0
        while source := self._passed or self._waiting:
            request = source[0]
            is_free = held.isdisjoint(request.keys)
            if is_free:
                entries, size = entries + len(request.entries), size + request.bytes
                if taken and (entries > self._bounds.entries_max or size > self._bounds.bytes_max):
                    break
            source.popleft()
            (taken if is_free else passed).append(request)
            held |= request.keys
        self._passed.extendleft(reversed(passed))
        self.queued -= sum(len(request.entries) for request in taken)
        self.queued_bytes -= sum(request.bytes for request in taken)
        return taken

    async def _write(self, group: Sequence[_Request[Entry, Answer]]) -> None:
        outcomes = await self._outcomes([entry for request in group for entry in request.entries])
        place = 0
        for request in group:
            own = outcomes[place : place + len(request.entries)]
            place += len(request.entries)
            if request.answered.done():
                continue  # who went away is not waited for
            answers = [outcome for outcome in own if not isinstance(outcome, _Away)]
            away = next((outcome for outcome in own if isinstance(outcome, _Away)), None)
            if away is None:
                request.answered.set_result(answers)
            else:
                request.answered.set_exception(away.error)

    async def _outcomes(self, entries: Sequence[Entry]) -> "list[Answer | Broken | _Away]":
        try:
            return list(await self._commit(entries))
        except Exception as error:  # noqa: BLE001 - whichever entry has the fault is answered with it
            if is_transient(error):
                return [_Away(error)] * len(entries)
            if len(entries) == 1:
                _log.exception("an entry cannot be written", key=self._key(entries[0]))
                return [Broken()]
            _log.warning("a group failed; going on in halves", entries=len(entries), error=repr(error))
        half = len(entries) // 2
        return [*await self._outcomes(entries[:half]), *await self._outcomes(entries[half:])]


@dataclass(frozen=True, slots=True)
class _Away:
    """What became of an entry by no fault of its own."""

    error: BaseException
