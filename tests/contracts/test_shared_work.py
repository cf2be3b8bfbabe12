"""What subscribers share: one look, one choice and one execution for all who ask the same."""

from collections import Counter
from contextlib import AsyncExitStack

import pytest

from db import nodes as node_store
from tests.support.server import RunningServer, hello
from tests.support.socket import Socket, open_socket
from tests.support.waiting import until

FOLLOWERS = 60
CHANGES = "subscription ($after: Cursor) { nodeChanges(after: $after) { kind node { id cordoned } } }"
OTHERS = "subscription { nodeChanges { kind node { hostname } } }"
CONDITIONS = """
subscription ($after: Cursor) {
  events(filter: {type: ["node.cordoned"]}, nodes: {text: "n"}, after: $after) { type node { cordoned } }
}
"""
CORDON = "mutation ($id: ID!) { cordonNode(id: $id) { id } }"
CURSOR = "{ feedCursor }"
Served = tuple[RunningServer, str]


@pytest.fixture
def reads(served: Served, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the reads of the server by the names of their fields."""
    counted: Counter[str] = Counter()

    def count(name: str, *, compiled: bool) -> None:
        counted[name] += compiled

    monkeypatch.setattr(served[0].services.meter, "read", count)
    return counted


async def _synced(socket: Socket, followers: int) -> None:
    marks = 0
    while marks < followers:
        marks += (await socket.next())["nodeChanges"]["kind"] == "SYNCED"


async def test_a_change_is_read_once_for_all_who_select_the_same(served: Served, reads: Counter[str]) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    async with AsyncExitStack() as stack:
        token = server.operator.token
        socket, other = [await stack.enter_async_context(open_socket(address, token)) for _ in range(2)]
        for number in range(FOLLOWERS):
            await socket.subscribe(CHANGES, id=str(number), after=cursor if number % 2 else None)
        await _synced(socket, FOLLOWERS)
        await other.subscribe(OTHERS)
        await _synced(other, 1)
        reads.clear()
        await server.operator.data(CORDON, id=node_id)
        told = [(await socket.next())["nodeChanges"]["node"] for _ in range(FOLLOWERS)]
        await other.next()
    assert told == [{"id": node_id, "cordoned": True}] * FOLLOWERS
    assert reads["node"] == 2


async def test_a_filter_is_asked_once_for_all_who_have_the_same(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    asked = []
    matching = node_store.matching_nodes

    async def counted(*given: object) -> frozenset[str]:
        asked.append(given)
        return await matching(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(node_store, "matching_nodes", counted)
    async with open_socket(address, server.operator.token) as socket:
        for number in range(FOLLOWERS):
            await socket.subscribe(CONDITIONS, id=str(number))
        await until(lambda: server.services.feed.subscribers == FOLLOWERS)
        await server.operator.data(CORDON, id=node_id)
        told = [(await socket.next())["events"] for _ in range(FOLLOWERS)]
    assert told == [{"type": "node.cordoned", "node": {"cordoned": True}}] * FOLLOWERS
    assert len(asked) == 1
