"""The database goes away for a moment while clients follow: nobody is told, and nothing is missed."""

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from db import nodes as node_store
from db.database import Transaction
from resolvers import feed, retries
from tests.support.server import RunningServer, feed_cursor, hello
from tests.support.socket import open_socket
from tests.support.waiting import until, until_seen

FITTING = """
subscription ($after: Cursor) {
  events(filter: {type: ["node.cordoned"]}, nodes: {text: "n"}, after: $after) { nodeId }
}
"""
CORDON = "mutation ($id: ID!) { cordonNode(id: $id) { id } }"
PLACED = "select max(position) from events where type = 'node.cordoned' having count(*) = $1"
Served = tuple[RunningServer, str]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "PAUSE_SECONDS", 0.01)


def _failing(read: Callable[..., Any], failures: list[Exception]) -> Callable[..., Any]:
    async def failing(*given: object, **named: object) -> Any:  # noqa: ANN401 - as the one that it stands for
        if failures:
            raise failures.pop()
        return await read(*given, **named)

    return failing


async def _cordoned(server: RunningServer, node_id: str) -> bool:
    return "errors" not in await server.operator.send(CORDON, id=node_id)


async def _placed(server: RunningServer, count: int) -> bool:
    """Say whether so many nodes' cordons are in the log, and this process has read up to there."""
    async with server.services.database.session() as tx:
        newest = await tx.value(
            "select max(position) from events where type = 'node.cordoned' having count(*) = $1", count
        )
    return newest is not None and server.services.feed.head >= newest


async def test_a_filtered_stream_outlives_the_connections_that_it_reads_by(
    served: Served, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    nodes = [await hello(server.agent, f"n{number}") for number in range(4)]
    killer = await asyncpg.connect(postgres_url)
    matching, ended = node_store.matching_nodes, list[int]()

    async def cut_off(tx: Transaction, *given: Any) -> Any:  # noqa: ANN401 - as the one that it stands for
        if len(ended) < len(nodes):
            ended.append(await tx.value("select pg_backend_pid()"))
            await killer.execute("select pg_terminate_backend($1, 5000)", ended[-1])
        return await matching(tx, *given)

    monkeypatch.setattr(node_store, "matching_nodes", cut_off)
    try:
        async with open_socket(address, server.operator.token) as socket:
            await socket.subscribe(FITTING)
            await until(lambda: server.services.feed.subscribers == 1)
            for node_id in nodes:
                await until_seen(lambda node_id=node_id: _cordoned(server, node_id))  # type: ignore[misc]
            told = [(await socket.next())["events"]["nodeId"] for _ in nodes]
    finally:
        await killer.close()
    assert told == nodes
    assert len(set(ended)) == len(nodes)


@pytest.mark.parametrize(
    ("module", "name"), [(node_store, "matching_nodes"), (feed, "feed_bounds"), (feed, "events_behind")]
)
async def test_a_follower_far_behind_is_told_all_whichever_of_its_reads_fails(
    served: Served, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    server, address = served
    cursor = await feed_cursor(server.operator)
    nodes = [await hello(server.agent, f"n{number}") for number in range(3)]
    for node_id in nodes:
        await server.operator.data(CORDON, id=node_id)
    await until_seen(lambda: _placed(server, len(nodes)))
    server.services.feed._tail.clear()
    failures: list[Exception] = [
        ConnectionResetError("reset"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.InterfaceError("connection is closed"),
    ]
    monkeypatch.setattr(module, name, _failing(getattr(module, name), failures))
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(FITTING, after=cursor)
        told = [(await socket.next())["events"]["nodeId"] for _ in nodes]
    assert told == nodes
    assert failures == []


async def test_what_is_no_moment_of_the_database_ends_a_stream(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    bug: list[Exception] = [ZeroDivisionError("a bug")]
    monkeypatch.setattr(node_store, "matching_nodes", _failing(node_store.matching_nodes, bug))
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(FITTING)
        await until(lambda: server.services.feed.subscribers == 1)
        await server.operator.data(CORDON, id=node_id)
        assert (await socket.error())["extensions"]["code"] == "INTERNAL"
    await until(lambda: server.services.feed.subscribers == 0)
    assert bug == []


async def test_the_pause_before_another_try_grows_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(retries.asyncio, "sleep", noted)  # type: ignore[attr-defined]
    monkeypatch.setattr(retries, "PAUSE_SECONDS_MAX", 0.03)
    failures: list[Exception] = [OSError("away")] * 4

    async def read() -> int:
        if failures:
            raise failures.pop()
        return 1

    assert await retries.retried(read) == 1
    assert pauses == [0.01, 0.02, 0.03, 0.03]
