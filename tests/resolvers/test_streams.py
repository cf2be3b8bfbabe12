"""What a stream keeps: what somebody is behind, and no more than it may."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from domain.cursor import FeedCursor
from domain.feed import Wanted
from domain.ids import TenantId
from resolvers import streams as stream_module
from resolvers.feed import Feed, FeedEvent
from resolvers.places import Place
from resolvers.streams import Streams
from tests.support.waiting import until

WANTED = Wanted(TenantId("ours"))
Following = AsyncGenerator[Sequence[FeedEvent], None]


class _Tail(Feed):
    """A feed whose log is what the test says, all of it in the tail."""

    def __init__(self) -> None:
        super().__init__(cast("Any", None), cast("Any", None))

    async def place(self, cursor: FeedCursor | None) -> FeedCursor:
        return cursor or FeedCursor(self.head)

    def grow(self, events: int) -> None:
        first = self.head + 1
        said: dict[str, Any] = {"tenant_id": "ours", "type": "a", "node_id": None, "payload": {}}
        self._append(cast("Any", [SimpleNamespace(position=first + n, **said) for n in range(events)]))


async def _all(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
    return found


async def _positions(following: Following, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += [event.row.position for event in await anext(following)]
    return found


async def _quiet(streams: Streams) -> None:
    """Wait until the one stream has chosen all there is."""
    (stream,) = streams._streams.values()
    await until(lambda: stream.end.position == streams._feed.head)


async def test_what_everybody_has_been_given_is_forgotten() -> None:
    feed = _Tail()
    streams = Streams(feed)
    quick, slow = (streams.follow(WANTED, None, _all, Place(FeedCursor(0))) for _ in range(2))
    waiting = [asyncio.ensure_future(anext(each)) for each in (quick, slow)]
    await until(lambda: feed.subscribers == 2)
    (stream,) = streams._streams.values()
    feed.grow(1)
    for first in waiting:
        assert [event.row.position for event in await first] == [1]
    feed.grow(9)
    assert await _positions(quick, 9) == list(range(2, 11))
    # That it took them it says by asking for more.
    next_one = asyncio.ensure_future(anext(quick))
    await _quiet(streams)
    assert [event.row.position for event in stream._kept] == list(range(1, 11))
    assert await _positions(slow, 9) == list(range(2, 11))
    another = asyncio.ensure_future(anext(slow))
    await until(lambda: not stream._kept)
    feed.grow(1)
    for last in (next_one, another):
        assert [event.row.position for event in await last] == [11]
    for each in (quick, slow):
        await each.aclose()
    assert streams._streams == {}


async def test_no_more_is_kept_than_may_be_and_who_is_behind_that_reads_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_module, "KEPT_MAX", 16)
    feed = _Tail()
    streams = Streams(feed)
    slow = streams.follow(WANTED, None, _all, Place(FeedCursor(0)))
    first = asyncio.ensure_future(anext(slow))
    await until(lambda: feed.subscribers == 1)
    (stream,) = streams._streams.values()
    feed.grow(1)
    assert len(await first) == 1
    for _ in range(10):
        feed.grow(10)
        await _quiet(streams)
        assert len(stream._kept) <= 16
    assert await _positions(slow, 100) == list(range(2, 102))
    await slow.aclose()


async def test_one_who_left_holds_nothing_for_the_others() -> None:
    feed = _Tail()
    streams = Streams(feed)
    quick, gone = (streams.follow(WANTED, None, _all, Place(FeedCursor(0))) for _ in range(2))
    waiting = [asyncio.ensure_future(anext(each)) for each in (quick, gone)]
    await until(lambda: feed.subscribers == 2)
    (stream,) = streams._streams.values()
    feed.grow(5)
    assert [len(await first) for first in waiting] == [5, 5]
    last = asyncio.ensure_future(anext(quick))
    await asyncio.sleep(0)
    assert len(stream._kept) == 5
    await gone.aclose()
    assert not stream._kept
    feed.grow(1)
    assert len(await last) == 1
    await quick.aclose()


async def test_those_who_wait_are_given_all_of_a_long_burst_from_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_module, "KEPT_MAX", 500)
    feed = _Tail()
    chosen: list[int] = []

    async def choose(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
        chosen.append(len(found))
        return found

    async def count(following: Following) -> None:
        assert await _positions(following, 3000) == list(range(1, 3001))
        await following.aclose()

    streams = Streams(feed)
    following = [asyncio.create_task(count(streams.follow(WANTED, None, choose, Place(None)))) for _ in range(3)]
    await until(lambda: feed.subscribers == 3)
    feed.grow(3000)
    await asyncio.gather(*following)
    assert sum(chosen) == 3000
