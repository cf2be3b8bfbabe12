"""The feed in this process: one tail of the log in memory, which every subscriber reads at its own pace.

There is no queue per subscriber. A subscriber is a place in the log; one that is near the end reads the tail, one
that fell behind reads the log itself, and nobody waits for it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import structlog

from db.connections import Row
from db.database import Database
from db.events import events_after, events_behind, feed_bounds
from db.hints import Hints
from domain.cursor import FeedCursor, encode_feed
from domain.feed import VisibleTransactions, Wanted, pass_event, read_snapshot, refuse_unreachable
from resolvers.retries import retried

TAIL_MAX: Final = 4096
BATCH_MAX: Final = 500
REACH_MAX: Final = 20_000
"""Positions that one statement looks through for whoever is behind the tail."""
REPLAYED_MAX: Final = 100
"""Events that it returns at most: decoding and choosing them keeps everybody else waiting, a few milliseconds."""
REPLAYS_MAX: Final = 2
"""How many of those who are behind read and choose at a time: they share what they take from everybody else."""
POLL_SECONDS: Final = 1.0
REST_SECONDS_MAX: Final = 1.0
_REST_SECONDS_EACH: Final = 0.00025
"""A wake takes a process about 0.1 ms: so they take no more than half of it."""

_log = structlog.get_logger("feed")


@dataclass(frozen=True)
class FeedEvent:
    """An event of the log, and where who has followed up to it stands."""

    row: Row
    place: FeedCursor

    @cached_property
    def cursor(self) -> str:
        """The place as clients are told it, written once for all of them."""
        return encode_feed(self.place)

    @cached_property
    def key(self) -> Hashable:
        """What two subscribers' results of the event have to agree in."""
        return self.row.position, self.cursor


@dataclass(frozen=True, slots=True)
class Topic:
    """Events of one type about one node."""

    type: str
    node_id: str | None


@dataclass(frozen=True, slots=True)
class NodesOf:
    """Events about nodes of one tenant."""

    tenant_id: str


class Feed:
    """The process's one reader of the log; run it once, follow it many times."""

    def __init__(self, database: Database, hints: Hints, *, poll_seconds: float = POLL_SECONDS) -> None:
        self._database = database
        self._hints = hints
        self._poll_seconds = poll_seconds
        self._tail: deque[FeedEvent] = deque(maxlen=TAIL_MAX)
        self._replaying = asyncio.Semaphore(REPLAYS_MAX)
        self._head = 0
        self._heard = asyncio.Event()
        self._grown = asyncio.Event()
        self._watchers: dict[Topic | NodesOf, set[asyncio.Event]] = {}
        self.subscribers = 0

    @property
    def head(self) -> int:
        """The newest position that this process has read."""
        return self._head

    @property
    def rest_seconds(self) -> float:
        """How long followers who were just woken are left alone, when there is more: it costs each of them a wake.

        One event comes at once. Of many, whoever follows alone is given each by itself, and one of a thousand what has
        come in a quarter of a second.
        """
        return min(REST_SECONDS_MAX, self.subscribers * _REST_SECONDS_EACH)

    async def start(self) -> None:
        """Learn where the log ends."""
        _, self._head = await self._bounds()

    async def end(self) -> FeedCursor:
        """Return the cursor behind the newest event."""
        _, head = await retried(self._bounds)
        return FeedCursor(head)

    async def run(self) -> None:
        """Keep the tail up to date until cancelled; needs `start` before."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hints.run(self._on_hint))
            tasks.create_task(self._follow_log())

    async def place(self, cursor: FeedCursor | None) -> FeedCursor:
        """Return the cursor, or the log's present end for none; raises CursorExpired."""
        floor, head = await retried(self._bounds)
        cursor = cursor or FeedCursor(head)
        refuse_unreachable(cursor, floor=floor, head=head)
        return cursor

    async def behind(self, cursor: FeedCursor, wanted: Wanted) -> tuple[Sequence[FeedEvent], FeedCursor]:
        """Return what is wanted of the next events behind a cursor, and the cursor behind those, once there are any.

        Raises CursorExpired.
        """
        await self.beyond(cursor.position)
        found = self._newest(cursor.position)
        if found:
            reached = found[-1].row.position
        else:
            found, reached = await self._replayed(cursor, wanted)
        if not cursor.waiting or cursor.snapshot is None:
            return [event for event in found if wanted.has(event.row)], FeedCursor(reached)
        return _unseen(cursor, read_snapshot(cursor.snapshot), found, wanted)

    @asynccontextmanager
    async def turn(self, position: int) -> AsyncIterator[None]:
        """Wait for a turn to read on from a position and to choose, where it takes reading the log itself."""
        if position >= self._head or self._newest(position):
            yield
            return
        async with self._replaying:
            yield

    async def beyond(self, position: int) -> None:
        """Wait until this process knows of an event behind the position."""
        while self._head <= position:
            await self._grown.wait()  # replaced at each growth, so it is always the next one that is awaited

    @contextmanager
    def watch(self, topic: Topic | NodesOf) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever one of the topic was placed: for who looks at the state then.

        Unlike followers, who each go through the log, who watches costs nothing while others' events come.
        """
        noticed = asyncio.Event()
        watchers = self._watchers.setdefault(topic, set())
        watchers.add(noticed)
        try:
            yield noticed
        finally:
            watchers.discard(noticed)
            if not watchers:
                self._watchers.pop(topic, None)

    def _newest(self, position: int) -> Sequence[FeedEvent]:
        """Return the next events behind a position that is in the tail, none for one that is not."""
        if not self._tail or position + 1 < (first := self._tail[0].row.position):
            return ()
        start = position + 1 - first
        # Nearly everybody is at the end, and a deque reaches a place from the end that is nearer.
        return [self._tail[place] for place in range(start, min(start + BATCH_MAX, len(self._tail)))]

    async def _replayed(self, cursor: FeedCursor, wanted: Wanted) -> tuple[Sequence[FeedEvent], int]:
        """Read on in the log itself, and return up to where as well.

        Of whose waiting events a cursor tells nobody knows (they are anybody's): until they are passed, all are read.
        """
        reach = min(cursor.position + REACH_MAX, self._head)
        reader, asked = self._database.reader(snapshot=False), None if cursor.waiting else wanted
        rows, reached = await events_behind(reader, cursor.position, asked, reach=reach, limit=REPLAYED_MAX)
        return [FeedEvent(row, FeedCursor(row.position)) for row in rows], reached

    async def _bounds(self) -> tuple[int, int]:
        async with self._database.session() as tx:
            return await feed_bounds(tx)

    def _on_hint(self, position: int) -> None:
        if position > self._head:
            self._heard.set()

    async def _follow_log(self) -> None:
        while True:
            # The poll is the guarantee: any hint may be lost.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    await self._heard.wait()
            self._heard.clear()
            await self._read_on()

    async def _read_on(self) -> None:
        """Read what the log has grown by; a database that is away is tried again at the next poll."""
        while True:
            try:
                async with self._database.session() as tx:
                    rows = await events_after(tx, self._head, BATCH_MAX)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next poll tries again: this loop must not end
                _log.warning("the log cannot be read now", error=repr(error))
                return
            if rows:
                self._append(rows)
            if len(rows) < BATCH_MAX:
                return

    def _append(self, rows: Sequence[Row]) -> None:
        topics = {topic for row in rows for topic in _topics(row)} if self._watchers else set()
        if rows[0].position != self._head + 1:
            self._tail.clear()  # retention overtook this process; the tail must have no hole
            topics = set(self._watchers)
        self._tail.extend(FeedEvent(row, FeedCursor(row.position)) for row in rows)
        self._head = rows[-1].position
        for topic in topics:
            for noticed in self._watchers.get(topic, ()):
                noticed.set()
        self._grown.set()
        self._grown = asyncio.Event()


def _topics(row: Row) -> Iterator[Topic | NodesOf]:
    yield Topic(row.type, row.node_id)
    if row.node_id is not None:
        yield NodesOf(row.tenant_id)


def _unseen(
    cursor: FeedCursor, visible: VisibleTransactions, found: Sequence[FeedEvent], wanted: Wanted
) -> tuple[Sequence[FeedEvent], FeedCursor]:
    """Return what is wanted and not in the snapshot of a cursor, and the cursor behind all that was found."""
    events: list[FeedEvent] = []
    for event in found:
        passed = pass_event(cursor, visible, event.row.position, event.row.transaction)
        cursor = passed.cursor
        if passed.new and wanted.has(event.row):
            events.append(FeedEvent(event.row, cursor))
    return events, cursor
