"""Group commit: what requests bring within a few milliseconds of each other is written together, each with its answer.

A statement costs a transaction whatever it carries; thousands of nodes that each report by themselves would pay for
thousands.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from db.connections import TRANSIENT

Entry = TypeVar("Entry")
Answer = TypeVar("Answer")

WAIT_SECONDS: Final = 0.002
ENTRIES_MAX: Final = 1000
_log = structlog.get_logger("group commit")


@dataclass(frozen=True, slots=True)
class _Request(Generic[Entry, Answer]):
    entries: Sequence[Entry]
    answered: asyncio.Future[Sequence[Answer]]


class GroupCommit(Generic[Entry, Answer]):
    """Gathers what concurrent requests submit. `commit` writes entries, of which no two have one key, all or none.

    It returns an answer for each entry, in order. A group that fails by a bug is written again request by request, so
    that the one with the fault fails alone.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Entry]], Awaitable[Sequence[Answer]]],
        key: Callable[[Entry], Hashable],
        *,
        wait_seconds: float = WAIT_SECONDS,
        entries_max: int = ENTRIES_MAX,
    ) -> None:
        self._commit = commit
        self._key = key
        self._wait_seconds = wait_seconds
        self._entries_max = entries_max
        self._waiting: list[_Request[Entry, Answer]] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, entries: Sequence[Entry]) -> Sequence[Answer]:
        """Write entries with those of other requests, and return their answers; raises what writing them raises."""
        loop = asyncio.get_running_loop()
        request: _Request[Entry, Answer] = _Request(entries, loop.create_future())
        self._waiting.append(request)
        self._size += len(entries)
        if self._size >= self._entries_max:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait_seconds, self._begin)
        return await request.answered

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting, self._size = self._waiting, [], 0
        for group in self._groups(waiting):
            task = asyncio.get_running_loop().create_task(self._write(group))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _groups(self, waiting: Sequence[_Request[Entry, Answer]]) -> list[list[_Request[Entry, Answer]]]:
        """Cut what waits so that a key stands in a group once, and a group is no larger than one request may be."""
        groups: list[list[_Request[Entry, Answer]]] = []
        keys: set[Hashable] = set()
        for request in waiting:
            own = {self._key(entry) for entry in request.entries}
            if not groups or keys & own or len(keys) + len(own) > self._entries_max:
                groups.append([])
                keys = set()
            groups[-1].append(request)
            keys |= own
        return groups

    async def _write(self, group: Sequence[_Request[Entry, Answer]]) -> None:
        try:
            answers = await self._commit([entry for request in group for entry in request.entries])
        except Exception as error:  # noqa: BLE001 - each request raises what befell it
            if len(group) > 1 and not isinstance(error, TRANSIENT):
                _log.warning("a group failed; going on one request at a time", requests=len(group), error=repr(error))
                for request in group:
                    await self._write([request])
                return
            for request in group:
                if not request.answered.done():
                    request.answered.set_exception(error)
            return
        place = 0
        for request in group:
            # Who went away is not waited for.
            if not request.answered.done():
                request.answered.set_result(answers[place : place + len(request.entries)])
            place += len(request.entries)
