"""Streams of events that fit a query: chosen once in this process, for all who follow the same.

A follower is a place in its stream, as it is in the log: near the end it reads what the stream has chosen already,
behind that it reads the log and chooses for itself until it has caught up. Nobody waits for anybody.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final, TypeVar

from domain.cursor import FeedCursor
from domain.feed import Wanted
from resolvers.feed import Feed, FeedEvent
from resolvers.places import Place
from resolvers.retries import retried

T = TypeVar("T")
KEPT_MAX: Final = 1024
"""Chosen events that a stream keeps for those who are not at its end."""

BATCH_MAX: Final = 64
"""What a follower is given at once: it has to be made, and to be held, before any of it is sent."""

Choose = Callable[[Sequence[FeedEvent]], Awaitable[Sequence[FeedEvent]]]


def batched(told: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut what is told into batches."""
    for begin in range(0, len(told), BATCH_MAX):
        yield told[begin : begin + BATCH_MAX]


async def _read_on(
    feed: Feed, place: FeedCursor, wanted: Wanted, choose: Choose
) -> tuple[Sequence[FeedEvent], FeedCursor]:
    """Choose of the next events behind a place, however often the database goes away; returns the place behind them."""

    async def read() -> tuple[Sequence[FeedEvent], FeedCursor]:
        async with feed.turn(place.position):
            items, behind = await feed.behind(place, wanted)
            return (await choose(items) if items else ()), behind

    return await retried(read)


class _Stream:
    """What was chosen behind the position `since`, up to the cursor `end`, as far as a follower is behind it."""

    def __init__(self, begin: FeedCursor) -> None:
        self.since = begin.position
        self.end = begin
        self._places: Counter[int] = Counter()
        """How many followers there are at a position."""
        self.task: asyncio.Task[None] | None = None
        self._kept: deque[FeedEvent] = deque()
        self._newer: tuple[int, list[FeedEvent]] = -1, []
        """What was asked for last: nearly all followers are at the same place."""
        self._grown = asyncio.Event()
        self._failure: Exception | None = None

    @property
    def failed(self) -> bool:
        """Whether the stream has ended."""
        return self._failure is not None

    async def run(self, feed: Feed, wanted: Wanted, choose: Choose) -> None:
        """Choose until cancelled; what is no moment of the database ends the stream, and each follower is told."""
        try:
            while True:
                chosen, end = await _read_on(feed, self.end, wanted, choose)
                self._append(chosen, end)
                if chosen:
                    await asyncio.sleep(feed.rest_seconds)  # who waits takes this before there is more
        except Exception as failure:  # noqa: BLE001 - raised by every follower
            self._failure = failure
            self._grown.set()

    @property
    def followed(self) -> bool:
        """Whether anybody follows."""
        return bool(self._places)

    def enter(self, position: int) -> None:
        """Count a follower who stands at a position."""
        self._places[position] += 1

    def leave(self, position: int) -> None:
        """Count a follower who stood at a position no more; what only they were behind is forgotten."""
        self._places[position] -= 1
        if not self._places[position]:
            del self._places[position]
            if self._kept and position < self._kept[0].row.position:
                self._forget()

    def after(self, position: int) -> list[FeedEvent]:
        """Return what was chosen behind a position that the stream reaches back to."""
        if self._newer[0] != position:
            newer = list(takewhile(lambda event: event.row.position > position, reversed(self._kept)))
            newer.reverse()
            self._newer = position, newer
        return self._newer[1]

    def passed(self, place: FeedCursor) -> FeedCursor:
        """Return where a follower at a place stands, of which nothing is wanted that it was not given."""
        all_looked_at = self.end.position > place.position >= self.since and not self.after(place.position)
        return self.end if all_looked_at else place

    async def grown(self) -> None:
        """Wait until more was chosen; raises what ended the stream."""
        if self._failure is None:
            await self._grown.wait()
        if self._failure is not None:
            raise self._failure

    def _append(self, chosen: Sequence[FeedEvent], end: FeedCursor) -> None:
        self.end = end
        if not chosen:
            return
        self._kept.extend(chosen)
        self._newer = -1, []
        self._forget()
        self._grown.set()
        self._grown = asyncio.Event()

    def _forget(self) -> None:
        hindmost = min(self._places, default=self.end.position)
        while self._kept and (len(self._kept) > KEPT_MAX or self._kept[0].row.position <= hindmost):
            self.since = self._kept.popleft().row.position


@dataclass(slots=True)
class _Follower:
    """Who follows a stream, and where it stands."""

    stream: _Stream
    place: FeedCursor

    def move(self, to: FeedCursor) -> None:
        """Go on to a place."""
        self.stream.enter(to.position)
        self.stream.leave(self.place.position)
        self.place = to


class Streams:
    """The streams of a process that somebody follows."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._streams: dict[Hashable, _Stream] = {}

    async def follow(
        self, wanted: Wanted, query: Hashable, choose: Choose, standing: Place
    ) -> AsyncGenerator[Sequence[FeedEvent], None]:
        """Yield what is wanted from where the follower stands and `choose` keeps, in order, then every new one.

        Who is behind is given what there is at once, in batches of no more than BATCH_MAX.

        `choose` must keep the same for equal queries. Raises CursorExpired, and what `choose` raises.
        """
        place = await self._feed.place(standing.sent)
        self._feed.subscribers += 1
        try:
            with self._joined((wanted, query), place, wanted, choose) as follower:
                while True:
                    place, stream = follower.place, follower.stream
                    if place.waiting or place.position < stream.since:
                        chosen, behind = await _read_on(self._feed, place, wanted, choose)
                    elif chosen := stream.after(place.position):
                        behind = chosen[-1].place
                    else:
                        with standing.waiting(partial(stream.passed, place)):
                            await stream.grown()
                        continue
                    for batch in batched(chosen):
                        yield batch
                    follower.move(behind)
        finally:
            self._feed.subscribers -= 1

    @contextmanager
    def _joined(self, key: Hashable, place: FeedCursor, wanted: Wanted, choose: Choose) -> Iterator[_Follower]:
        stream = self._streams.get(key)
        if stream is None or stream.failed:
            # At the log's end: whoever resumes far behind must not have others wait.
            stream = self._streams[key] = _Stream(FeedCursor(self._feed.head))
            stream.task = asyncio.create_task(stream.run(self._feed, wanted, choose))
        stream.enter(place.position)
        follower = _Follower(stream, place)
        try:
            yield follower
        finally:
            stream.leave(follower.place.position)
            if not stream.followed:
                if stream.task is not None:
                    stream.task.cancel()
                if self._streams.get(key) is stream:
                    del self._streams[key]
