"""What subscribers share: one look, one choice and one execution for all who ask the same."""

from collections import Counter
from contextlib import AsyncExitStack

import pytest

from db import nodes as node_store
from db.connections import Planning
from db.database import Database, Reader
from resolvers import results
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


async def test_who_comes_later_is_shown_what_was_read_since_a_node_changed_last(
    served: Served, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SECONDS_MAX", 3600.0)
    server, address = served
    nodes = [await hello(server.agent, f"n{number}") for number in range(5)]
    seen: dict[str, bool] = {}
    async with (
        open_socket(address, server.operator.token) as first,
        open_socket(address, server.operator.token) as later,
    ):
        await first.subscribe(CHANGES)
        await _synced(first, 1)
        assert reads["node"] == 5
        await server.operator.data(CORDON, id=nodes[1])
        await first.next()
        assert reads["node"] == 6
        await later.subscribe(CHANGES)
        while (told := (await later.next())["nodeChanges"])["kind"] != "SYNCED":
            seen[told["node"]["id"]] = told["node"]["cordoned"]
    assert seen == {node_id: node_id == nodes[1] for node_id in nodes}
    assert reads["node"] == 7


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


COMMANDS = """
subscription ($first: Int) { events(filter: {type: ["node.cordoned"]}) { node { commands(first: $first) {
  nodes { id }
} } } }
"""
_GIVEN = """
insert into commands (id, tenant_id, node_id, sequence, idempotency_key, kind, payload, request, state, not_after,
    expires_at, issued_by, request_id, finished_at)
select 'cmd_' || lpad(i::text, 26, '0'), $1, $2, i, i::text, 'inventory.refresh', '{}', '{}', 'succeeded', now(), now(),
    'x', 'x', now()
from generate_series(1, 30) i
"""


async def test_a_variable_that_is_null_shares_nothing_with_one_that_is_absent(
    database: Database, served: Served
) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    async with database.transaction() as tx:
        await tx.execute(_GIVEN, server.operator.tenant_id, node_id)
    query = "query ($id: ID!, $first: Int) { computeNode(id: $id) { commands(first: $first) { nodes { id } } } }"
    given: dict[str, dict[str, int | None]] = {"null": {"first": None}, "absent": {}, "few": {"first": 3}}
    asked = {name: await server.operator.data(query, id=node_id, **more) for name, more in given.items()}
    async with open_socket(address, server.operator.token) as socket:
        for name, more in given.items():
            await socket.subscribe(COMMANDS, id=name, **more)
        await until(lambda: server.services.feed.subscribers == len(given))
        await server.operator.data(CORDON, id=node_id)
        told = {each["id"]: each["payload"]["data"]["events"] for each in [await socket.message() for _ in given]}
    counts = {name: len(each["node"]["commands"]["nodes"]) for name, each in told.items()}
    assert counts == {name: len(each["computeNode"]["commands"]["nodes"]) for name, each in asked.items()}
    assert len(set(counts.values())) == len(given)


async def test_a_moment_without_the_database_loses_nothing_of_what_is_told(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    open_reader, failures = Reader._open, 3

    async def failing(self: Reader, planning: Planning) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            raise ConnectionResetError("lost")
        return await open_reader(self, planning)

    async with open_socket(address, server.operator.token) as socket:
        query = 'subscription { events(filter: {type: ["node.cordoned"]}) { node { id cordoned } } }'
        await socket.subscribe(query)
        await until(lambda: server.services.feed.subscribers == 1)
        monkeypatch.setattr(Reader, "_open", failing)
        await server.operator.data(CORDON, id=node_id)
        assert (await socket.next())["events"]["node"] == {"id": node_id, "cordoned": True}
    assert failures == 0


async def test_who_waits_in_vain_for_the_database_is_told_and_not_moved_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")

    async def failing(_self: Reader, _planning: Planning) -> object:
        raise ConnectionResetError("lost")

    monkeypatch.setattr("schema.execution._AWAY_SECONDS_MAX", 0.2)
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe('subscription { events(filter: {type: ["node.cordoned"]}) { cursor node { id } } }')
        await until(lambda: server.services.feed.subscribers == 1)
        monkeypatch.setattr(Reader, "_open", failing)
        await server.operator.send(CORDON, id=node_id)
        said = [await socket.message() for _ in range(2)]
    assert said[0]["payload"]["data"] is None
    assert said[0]["payload"]["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
    assert said[1]["type"] == "complete"
