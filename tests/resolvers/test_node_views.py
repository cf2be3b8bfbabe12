"""Views as the process keeps them: what a look costs, and what is left of one that failed or was given up."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

import asyncpg
import pytest

from db.database import Database
from db.declared.nodes import NodeQuery
from db.events import NewEvent, write_events
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


@pytest.mark.parametrize("name", ["feed_cursor", "touched_nodes", "matching_nodes"])
async def test_a_view_outlives_the_connections_that_it_reads_by(
    server: RunningServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(retries, "PAUSE_SECONDS", 0.01)
    place = module.node_store if name == "matching_nodes" else module
    read, ended = getattr(place, name), list[int]()
    killer = await asyncpg.connect(postgres_url)

    async def cut_off(reader: Any, *given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        if len(ended) < 5:
            ended.append(await reader.value("select pg_backend_pid()"))
            await killer.execute("select pg_terminate_backend($1, 5000)", ended[-1])
        return await read(reader, *given)

    node_id = await hello(server.agent, "n1")
    monkeypatch.setattr(place, name, cut_off)
    after = FeedCursor(0)
    try:
        for _ in range(2):
            async with aclosing(
                server.services.views.follow(server.operator.tenant_id, EVERYTHING, after)
            ) as following:
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

    async with aclosing(server.services.views.follow(server.operator.tenant_id, EVERYTHING, None)) as following:
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
    gates, begun, read = [asyncio.Event() for _ in range(2)], list[int](), module.feed_cursor

    async def slow(reader: Any) -> FeedCursor:  # noqa: ANN401
        begun.append(1)
        cursor = await read(reader)
        if len(begun) <= len(gates):
            await gates[len(begun) - 1].wait()
        return cursor

    monkeypatch.setattr(module, "feed_cursor", slow)
    first = asyncio.create_task(view.present())
    await until(lambda: len(begun) == 1)
    node_id = await hello(server.agent, "n2")
    given_up, waits = [asyncio.create_task(view.present()) for _ in range(2)]
    gates[0].set()
    await first
    await until(lambda: len(begun) == 2)
    given_up.cancel()
    assert node_id in (await waits).members


async def test_a_view_does_not_look_for_what_is_of_another_tenant_or_of_no_node(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = await hello(server.agent, "n1")
    services, tenant_id = server.services, server.operator.tenant_id
    looks = _counted(monkeypatch, "feed_cursor")
    async with aclosing(services.views.follow(tenant_id, EVERYTHING, None)) as following:
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
    read, reading, most = module.node_store.matching_nodes, set[int](), list[int]()

    async def counted(reader: Any, *given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        reading.add(id(reader))
        most.append(len(reading))
        await asyncio.sleep(0.01)
        found = await read(reader, *given)
        reading.discard(id(reader))
        return found

    monkeypatch.setattr(module.node_store, "matching_nodes", counted)
    queries = [NodeQuery(text="n" * (number + 1)) for number in range(12)]
    async with AsyncExitStack() as stack:
        views = [server.services.views.follow(server.operator.tenant_id, query, None) for query in queries]
        following = [await stack.enter_async_context(aclosing(view)) for view in views]
        told = await asyncio.gather(*(_next(each) for each in following))
    assert told == [[(ViewChange.ENTERED, node_id)]] + [[(ViewChange.SYNCED, None)]] * 11
    assert max(most) == module.AT_ONCE_MAX
