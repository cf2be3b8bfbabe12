"""The log is forgotten while clients read it: they are told, and never passed over anything."""

from collections import deque
from collections.abc import Sequence

import pytest

from db.database import Database
from db.events import NewEvent, write_events
from domain.cursor import FeedCursor
from domain.errors import CursorExpired
from domain.feed import Wanted
from resolvers import feed as feeds
from resolvers.feed import FeedEvent
from resolvers.places import Place
from tests.support.events import forget_all
from tests.support.server import RunningServer, hello
from tests.support.waiting import until

PAGE = "query ($c: Cursor) { events(first: 2, after: $c) { nodes { cursor } pageInfo { endCursor } } }"


async def _commit(database: Database, tenant_id: str, count: int) -> None:
    for _ in range(count):
        async with database.transaction() as tx:
            await write_events(tx, [NewEvent(tenant_id, None, "test", {})])  # type: ignore[arg-type]


async def _all(found: Sequence[FeedEvent]) -> Sequence[FeedEvent]:
    return found


async def _forget_all(database: Database) -> None:
    await forget_all(database)


async def test_a_follower_behind_the_tail_is_told_when_what_follows_was_dropped(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "REPLAYED_MAX", 4)
    feed, tenant_id = server.services.feed, server.operator.tenant_id
    feed._tail = deque(maxlen=1)
    await _commit(database, tenant_id, 12)
    await until(lambda: feed.head == 12)
    following = server.services.streams.follow(Wanted(tenant_id), None, _all, Place(FeedCursor(0)))
    assert [item.row.position for item in await anext(following)] == [1, 2, 3, 4]
    await _forget_all(database)
    with pytest.raises(CursorExpired):
        await anext(following)


async def test_who_wants_nothing_of_what_was_dropped_is_told_too(database: Database, server: RunningServer) -> None:
    feed, wanted = server.services.feed, Wanted(server.operator.tenant_id, types=frozenset({"none"}))
    await _commit(database, server.operator.tenant_id, 12)
    await until(lambda: feed.head == 12)
    feed._tail.clear()
    assert await feed.behind(FeedCursor(3), wanted) == ([], FeedCursor(12))
    await _forget_all(database)
    with pytest.raises(CursorExpired):
        await feed.behind(FeedCursor(3), wanted)


async def test_pages_of_the_log_end_with_an_error_when_what_follows_was_dropped(
    database: Database, server: RunningServer
) -> None:
    await hello(server.agent, "n1")
    await _commit(database, server.operator.tenant_id, 3)
    await until(lambda: server.services.feed.head == 4)
    first = (await server.operator.data(PAGE))["events"]
    second = (await server.operator.data(PAGE, c=first["pageInfo"]["endCursor"]))["events"]
    assert len(second["nodes"]) == 2
    await _forget_all(database)
    answer = await server.operator.send(PAGE, c=first["pageInfo"]["endCursor"])
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["CURSOR_EXPIRED"]
    # Who has read to the end has missed nothing, and goes on.
    await _commit(database, server.operator.tenant_id, 1)
    await until(lambda: server.services.feed.head == 5)
    rest = await server.operator.data(PAGE, c=second["pageInfo"]["endCursor"])
    assert len(rest["events"]["nodes"]) == 1
