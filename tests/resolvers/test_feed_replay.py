"""Reading the log from far behind: what is not wanted is left in the database, and only a few read at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import Any

import pytest

from db.database import Database
from db.events import NewEvent, events_behind, feed_cursor, place_events, write_events
from db.hints import Hints
from domain.cursor import FeedCursor
from domain.feed import Wanted
from domain.ids import NodeId, TenantId
from resolvers import feed as feeds
from resolvers.feed import Feed, FeedEvent
from resolvers.places import Place
from resolvers.streams import Streams
from tests.support.waiting import until

OURS, THEIRS = TenantId("ours"), TenantId("theirs")


async def _write(database: Database, *events: NewEvent) -> None:
    async with database.transaction() as tx:
        await write_events(tx, events)


async def _place(database: Database) -> None:
    async with database.transaction() as tx:
        assert await place_events(tx, 100_000)


def _event(tenant: TenantId = OURS, type_: str = "a", node: str | None = None, **payload: Any) -> NewEvent:  # noqa: ANN401
    return NewEvent(tenant, None if node is None else NodeId(node), type_, payload)


@asynccontextmanager
async def _running(database: Database, *, held: bool) -> AsyncIterator[Feed]:
    """Run a feed that has read all of the log, and holds it or nothing of it."""
    feed = Feed(database, Hints("memory://"), poll_seconds=0.02)
    running = asyncio.create_task(feed.run())
    try:
        async with database.session() as tx:
            head = await tx.value("select position from feed_head")
        await until(lambda: feed.head == head)
        if not held:
            feed._tail.clear()
        yield feed
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def _all(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
    return found


async def _read(feed: Feed, cursor: FeedCursor, wanted: Wanted) -> tuple[list[int], FeedCursor]:
    """Read on to the end of the log."""
    found: list[int] = []
    while cursor.position < feed.head:
        events, cursor = await feed.behind(cursor, wanted)
        found += [event.row.payload["n"] for event in events]
    return found, cursor


WANTED = (
    Wanted(OURS),
    Wanted(THEIRS),
    Wanted(OURS, types=frozenset({"a"})),
    Wanted(OURS, types=frozenset({"a", "b"}), node_ids=frozenset({"node_1"})),
    Wanted(OURS, node_ids=frozenset({"node_0", "node_1"}), conditions=frozenset({"c0"})),
    Wanted(OURS, types=frozenset({"none"})),
)


@pytest.mark.parametrize("wanted", WANTED, ids=str)
async def test_the_log_gives_what_the_tail_does(
    database: Database, monkeypatch: pytest.MonkeyPatch, wanted: Wanted
) -> None:
    monkeypatch.setattr(feeds, "REPLAYED_MAX", 7)
    monkeypatch.setattr(feeds, "REACH_MAX", 20)
    numbers = count()

    def some(times: int) -> list[NewEvent]:
        return [
            _event((OURS, THEIRS)[n % 4 == 3], "abc"[n % 3], f"node_{n % 5}", condition=f"c{n % 2}", n=n)
            for n in (next(numbers) for _ in range(times))
        ]

    await _write(database, *some(50))
    await _place(database)
    # Of what waits while the cursor is made it has seen one half: a transaction that is older ends later.
    async with database.transaction() as late:
        await write_events(late, some(10))
        await _write(database, *some(20))
        async with database.transaction() as tx:
            cursor = await feed_cursor(tx)
    await _write(database, *some(60))
    await _place(database)
    assert cursor.waiting == 20
    read = {}
    for held in (True, False):
        async with _running(database, held=held) as feed:
            read[held] = await _read(feed, FeedCursor(0), wanted), await _read(feed, cursor, wanted)
    assert read[True] == read[False]
    (everything, _), (unseen, end) = read[True]
    assert unseen == [n for n in everything if 50 <= n < 60 or n >= 80]
    assert end == FeedCursor(140)


async def test_what_nobody_wants_is_passed_over_in_few_statements(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    async def noted(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        rows, reached = await events_behind(*given, **named)
        reads.append(len(rows))
        return rows, reached

    monkeypatch.setattr(feeds, "events_behind", noted)
    await _write(database, *(_event(THEIRS) for _ in range(2000)), *(_event(type_="b") for _ in range(2000)))
    await _place(database)
    async with _running(database, held=False) as feed:
        wanted = Wanted(OURS, types=frozenset({"a"}))
        following = Streams(feed).follow(wanted, None, _all, Place(FeedCursor(0)))
        first = asyncio.ensure_future(anext(following))
        await until(lambda: bool(reads))
        await _write(database, _event(n=1))
        await _place(database)
        assert [event.row.position for event in await first] == [4001]
        await following.aclose()
    assert reads == [0]


async def test_only_a_few_read_and_choose_from_the_log_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = 0, 0

    async def choose(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001)
        at_once -= 1
        return found

    async def read(streams: Streams, query: int) -> list[int]:
        found: list[int] = []
        async with aclosing(streams.follow(Wanted(OURS), query, choose, Place(FeedCursor(0)))) as following:
            async for events in following:
                found += [event.row.payload["n"] for event in events]
                if len(found) >= 50:
                    break
        return found

    monkeypatch.setattr(feeds, "REPLAYED_MAX", 10)
    await _write(database, *(_event(n=number) for number in range(50)))
    await _place(database)
    async with _running(database, held=False) as feed:
        streams = Streams(feed)
        found = await asyncio.gather(*(read(streams, query) for query in range(12)))
    assert found == [list(range(50))] * 12
    assert most == feeds.REPLAYS_MAX
