"""Views as the process keeps them: what a look costs, and what is left of one that failed or was given up."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest

from db import nodes as node_store
from db.database import Database
from db.declared.nodes import NodeQuery
from db.events import NewEvent, feed_cursor, write_events
from domain.cursor import FeedCursor
from domain.ids import NodeId
from domain.node_view import ViewChange
from resolvers import node_views as module
from resolvers import retries
from resolvers.node_views import Told
from tests.support.server import RunningServer, hello
from tests.support.waiting import SECONDS_MAX, until

CORDON = "mutation ($id: ID!) { cordonNode(id: $id) { id } }"
UNCORDON = "mutation ($id: ID!) { uncordonNode(id: $id) { id } }"
EVERYTHING = NodeQuery()


async def _next(following: AsyncIterator[Sequence[Told]]) -> list[tuple[ViewChange, str | None]]:
    async with asyncio.timeout(SECONDS_MAX):
        return [(each.change, each.node_id) for each in await anext(following)]


async def _quiet() -> None:
    """Let what was woken begin: there is no event of what does not happen."""
    await asyncio.sleep(0.2)


def _counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Count the calls of what the module reads by."""
    read, calls = getattr(module, name), list[int]()

    async def counted(*given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        calls.append(1)
        return await read(*given)

    monkeypatch.setattr(module, name, counted)
    return calls


async def _cordon(server: RunningServer, node_id: str) -> None:
    await server.operator.data(CORDON, id=node_id)


@asynccontextmanager
async def _followed(
    server: RunningServer, query: NodeQuery = EVERYTHING, after: FeedCursor | None = None
) -> AsyncIterator[AsyncIterator[Sequence[Told]]]:
    following = server.services.views.follow(server.operator.tenant_id, query, after)
    async with aclosing(cast("AsyncGenerator[Sequence[Told]]", following)):
        yield following


@pytest.mark.parametrize(
    ("place", "name"), [(module, "feed_cursor"), (module, "touched_nodes"), (node_store, "matching_nodes")]
)
async def test_a_view_outlives_the_connections_that_it_reads_by(
    server: RunningServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    monkeypatch.setattr(retries, "PAUSE_SECONDS", 0.01)
    read, ended = getattr(place, name), list[int]()
    killer = await asyncpg.connect(postgres_url)

    async def cut_off(reader: Any, *given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        if len(ended) < 5:
            ended.append(await reader.value("select pg_backend_pid()"))
            await killer.execute("select pg_terminate_backend($1, 5000)", ended[-1])
        return await read(reader, *given)

    node_id = await hello(server.agent, "n1")
    monkeypatch.setattr(place, name, cut_off)
    try:
        for _ in range(2):
            async with _followed(server, after=FeedCursor(0)) as following:
                assert await _next(following) == [(ViewChange.ENTERED, node_id)]
                assert await _next(following) == [(ViewChange.SYNCED, None)]
                await _cordon(server, node_id)
                assert await _next(following) == [(ViewChange.CHANGED, node_id)]
                await server.operator.data(UNCORDON, id=node_id)
                assert await _next(following) == [(ViewChange.CHANGED, node_id)]
    finally:
        await killer.close()
    assert len(ended) == 5


async def test_what_is_no_moment_of_the_database_ends_a_view(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = await hello(server.agent, "n1")

    async def fail(*_: object) -> list[str]:
        raise ZeroDivisionError

    async with _followed(server) as following:
        assert await _next(following) == [(ViewChange.ENTERED, node_id)]
        assert await _next(following) == [(ViewChange.SYNCED, None)]
        monkeypatch.setattr(module, "touched_nodes", fail)
        await _cordon(server, node_id)
        with pytest.raises(ZeroDivisionError):
            await _next(following)


async def test_who_waits_for_a_look_that_is_given_up_is_shown_what_is_there_now(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hello(server.agent, "n1")
    turns = asyncio.Semaphore(1)
    view = module._View(server.services.database, turns, server.operator.tenant_id, EVERYTHING)
    gates, begun = [asyncio.Event() for _ in range(2)], list[int]()

    async def slow(reader: Any) -> FeedCursor:  # noqa: ANN401
        begun.append(1)
        cursor = await feed_cursor(reader)
        if len(begun) <= len(gates):
            await gates[len(begun) - 1].wait()
        return cursor

    monkeypatch.setattr(module, "feed_cursor", slow)
    first = asyncio.create_task(view.present())
    await until(lambda: len(begun) == 1)
    node_id = await hello(server.agent, "n2")
    given_up, waits = [asyncio.create_task(view.begin(None)) for _ in range(2)]
    gates[0].set()
    await first
    await until(lambda: len(begun) == 2)
    given_up.cancel()
    assert node_id in {each.node_id for each in (await waits).told}


async def test_a_view_does_not_look_for_what_is_of_another_tenant_or_of_no_node(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = await hello(server.agent, "n1")
    services, tenant_id = server.services, server.operator.tenant_id
    looks = _counted(monkeypatch, "feed_cursor")
    async with _followed(server) as following:
        assert await _next(following) == [(ViewChange.ENTERED, node_id)]
        assert await _next(following) == [(ViewChange.SYNCED, None)]
        await until(lambda: services.feed.head >= 1)
        await _quiet()
        known, before = len(looks), services.feed.head
        async with database.transaction() as tx:
            await write_events(tx, [NewEvent(server.stranger.tenant_id, None, "test.changed", {})])
            await write_events(tx, [NewEvent(server.stranger.tenant_id, NodeId("node_x"), "test.changed", {})])
            await write_events(tx, [NewEvent(tenant_id, None, "test.changed", {})])
        await until(lambda: services.feed.head >= before + 3)
        await _quiet()
        assert len(looks) == known
        await _cordon(server, node_id)
        assert await _next(following) == [(ViewChange.CHANGED, node_id)]


async def test_few_views_look_at_once(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    node_id = await hello(server.agent, "n1")
    read, reading, most = node_store.matching_nodes, set[int](), list[int]()

    async def counted(reader: Any, *given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        reading.add(id(reader))
        most.append(len(reading))
        await asyncio.sleep(0.01)
        found = await read(reader, *given)
        reading.discard(id(reader))
        return found

    monkeypatch.setattr(node_store, "matching_nodes", counted)
    queries = [NodeQuery(text="n" * (number + 1)) for number in range(12)]
    async with AsyncExitStack() as stack:
        following = [await stack.enter_async_context(_followed(server, query)) for query in queries]
        told = await asyncio.gather(*(_next(each) for each in following))
    assert told == [[(ViewChange.ENTERED, node_id)]] + [[(ViewChange.SYNCED, None)]] * 11
    assert max(most) == module.AT_ONCE_MAX


async def test_followers_keep_nothing_of_what_they_began_with(server: RunningServer) -> None:
    for number in range(3):
        await hello(server.agent, f"n{number}")
    async with AsyncExitStack() as stack:
        following = await stack.enter_async_context(_followed(server))
        assert len(await _next(following)) == 3
        assert await _next(following) == [(ViewChange.SYNCED, None)]
        (view,) = server.services.views._views.values()
        kept = sys.getrefcount(view._listed)
        for _ in range(5):
            following = await stack.enter_async_context(_followed(server))
            assert len(await _next(following)) == 3
            assert await _next(following) == [(ViewChange.SYNCED, None)]
        now = sys.getrefcount(view._listed)
    assert now == kept


async def test_who_resumes_while_others_look_is_told_up_to_there_and_then_every_change_once(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    n1, n2 = [await hello(server.agent, name) for name in ("n1", "n2")]
    touched, ours = module.touched_nodes, FeedCursor(0)  # type: ignore[attr-defined]

    async def slow(reader: Any, tenant_id: Any, cursor: FeedCursor) -> Any:  # noqa: ANN401 - as the one that it stands for
        found = await touched(reader, tenant_id, cursor)
        if cursor == ours:
            await _cordon(server, n2)
            assert await _next(live) == [(ViewChange.CHANGED, n2)]
        return found

    async with _followed(server) as live:
        assert len(await _next(live)) == 2
        assert await _next(live) == [(ViewChange.SYNCED, None)]
        monkeypatch.setattr(module, "touched_nodes", slow)
        async with _followed(server, after=ours) as resumed:
            assert await _next(resumed) == [(ViewChange.ENTERED, n1), (ViewChange.ENTERED, n2)]
            assert await _next(resumed) == [(ViewChange.SYNCED, None)]
            await _cordon(server, n1)
            assert await _next(resumed) == [(ViewChange.CHANGED, n1)]
