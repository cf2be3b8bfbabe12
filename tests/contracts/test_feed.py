"""The feed: every event once, in order, over queries, reconnects and faults."""

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import httpx
import pytest

from db.database import Database
from db.events import NewEvent, events_after, place_events, write_events
from db.hints import Hints
from resolvers import feed
from resolvers.feed import Feed
from tests.support.events import forget_all
from tests.support.server import RunningServer, applied, hello, ingest, listening_server, report
from tests.support.socket import Socket, open_socket
from tests.support.waiting import until

CHANGED = """
subscription ($after: Cursor, $nodeIds: [ID!]) {
  nodeInventoryChanged(after: $after, nodeIds: $nodeIds) {
    cursor nodeId digest sections node { hostname latestSnapshot { digest } }
  }
}
"""
EVENTS = (
    "subscription ($after: Cursor, $filter: EventFilter) { events(after: $after, filter: $filter) { cursor type } }"
)
OTHER = "subscription ($after: Cursor) { events(after: $after) { cursor ... on OtherEvent { payload } } }"
CURSOR = "{ feedCursor }"
Served = tuple[RunningServer, str]


async def _numbers(socket: Socket, count: int) -> list[int]:
    return [(await socket.next())["events"]["payload"]["n"] for _ in range(count)]


async def _commit(database: Database, tenant_id: str, numbers: list[int]) -> None:
    for number in numbers:
        async with database.transaction() as tx:
            event = NewEvent(tenant_id, None, "test.changed", {"n": number})  # type: ignore[arg-type]
            await write_events(tx, [event])
            await asyncio.sleep(random.random() / 1000)  # noqa: S311 - so that commits overtake each other


async def test_a_change_reaches_a_subscriber_with_the_fields_it_selected(served: Served) -> None:
    server, address = served
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGED, after=cursor, nodeIds=[node_id])
        await ingest(server.agent, node_id, {"os": {"kernel": "6.2.0"}})
        event = (await socket.next())["nodeInventoryChanged"]
    assert event["nodeId"] == node_id
    assert event["sections"] == ["os"]
    assert event["node"] == {"hostname": "n1", "latestSnapshot": {"digest": event["digest"]}}


async def test_each_event_is_read_with_loaders_of_its_own(served: Served) -> None:
    server, address = served
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGED, after=cursor)
        for kernel in ("6.2.0", "6.3.0", "6.4.0"):
            await ingest(server.agent, node_id, {"os": {"kernel": kernel}})
            event = (await socket.next())["nodeInventoryChanged"]
            assert event["node"]["latestSnapshot"]["digest"] == event["digest"]


@pytest.mark.parametrize("relayed_before_the_query", [True, False])
async def test_a_change_before_the_query_is_not_told_and_one_after_it_is_told_once(
    database: Database, served: Served, *, relayed_before_the_query: bool
) -> None:
    server, address = served
    async with database.session() as held:
        # While this lock is held the relay places nothing: a query sees a change whose event has no position yet.
        if not relayed_before_the_query:
            await held.execute("select pg_advisory_lock($1)", 0x666C_6565_7402)
        await _commit(database, server.operator.tenant_id, [1])
        if relayed_before_the_query:
            await until(lambda: server.services.feed.head == 1)
        cursor = (await server.operator.data(CURSOR))["feedCursor"]
        await _commit(database, server.operator.tenant_id, [2])
        await held.execute("select pg_advisory_unlock_all()")
    await _commit(database, server.operator.tenant_id, [3])
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(OTHER, after=cursor)
        assert await _numbers(socket, 2) == [2, 3]


async def test_a_client_that_reconnects_misses_and_doubles_nothing_among_concurrent_transactions(
    database: Database, served: Served
) -> None:
    server, address = served
    writers, each = 8, 125
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    tenant_id = server.operator.tenant_id
    writing = [
        asyncio.create_task(_commit(database, tenant_id, list(range(writer * each, (writer + 1) * each))))
        for writer in range(writers)
    ]
    seen: list[int] = []
    while len(seen) < writers * each:
        async with open_socket(address, server.operator.token) as socket:
            await socket.subscribe(OTHER, after=cursor)
            for _ in range(min(random.randint(1, 90), writers * each - len(seen))):  # noqa: S311 - any number does
                event = (await socket.next())["events"]
                seen.append(event["payload"]["n"])
                cursor = event["cursor"]
            socket.connection.transport.abort()
    await asyncio.gather(*writing)
    assert sorted(seen) == list(range(writers * each))
    for writer in range(writers):
        own = [number for number in seen if number // each == writer]
        assert own == sorted(own)


async def test_positions_have_no_gap(database: Database, server: RunningServer) -> None:
    await asyncio.gather(*(_commit(database, server.operator.tenant_id, list(range(20))) for _ in range(5)))
    await until(lambda: server.services.feed.head == 100)
    async with database.transaction() as tx:
        rows = await tx.fetch("select position from events order by position")
    assert [row.position for row in rows] == list(range(1, 101))


async def test_the_death_of_the_fan_out_backend_loses_no_event(
    database: Database, database_url: str, postgres_url: str
) -> None:
    hints = Hints(database_url)
    followed = Feed(database, hints, poll_seconds=0.1)
    await followed.start()
    running = asyncio.create_task(followed.run())
    try:
        await until(lambda: hints.connected)
        await _kill_listeners(postgres_url, database_url)
        for number in range(5):
            await _commit(database, "tenant", [number])
            async with database.transaction() as tx:
                placed = await place_events(tx, 100)
            assert placed
            hints.publish(placed.position)
            await until(lambda: followed.head == placed.position)  # noqa: B023 - awaited in the same turn
        await until(lambda: hints.connected)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_abrupt_closes_leave_no_subscriber_behind(served: Served) -> None:
    server, address = served
    for _ in range(5):
        async with open_socket(address, server.operator.token) as socket:
            await socket.subscribe(EVENTS)
            await socket.subscribe(EVENTS, id="2")
            await until(lambda: server.services.feed.subscribers == 2)
            socket.connection.transport.abort()
        await until(lambda: server.services.feed.subscribers == 0)
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(EVENTS)  # closed during the subscribe step
        socket.connection.transport.abort()
    await asyncio.sleep(0.1)
    await until(lambda: server.services.feed.subscribers == 0)


async def test_clients_that_do_not_read_keep_no_connection_and_nobody_waits_for_them(database_url: str) -> None:
    database = await Database.connect(database_url, size_max=4)
    query = """
    subscription { nodeInventoryChanged { node { latestSnapshot { sections { raw(section: "images") } } } } }
    """
    async with listening_server(database) as (server, address), AsyncExitStack() as stack:
        large = {"os": {"kernel": "6.0"}, "images": {"ofANewerAgent": "x" * 2_000_000}}
        node_id = await report(server.agent, "n1", large)
        for _ in range(8):
            socket = await stack.enter_async_context(open_socket(address, server.operator.token))
            await socket.subscribe(query)
            socket.connection.transport.pause_reading()
            stack.callback(socket.connection.transport.abort)
        await until(lambda: server.services.feed.subscribers == 8)
        async with asyncio.timeout(15):
            for number in range(1, 6):
                await ingest(server.agent, node_id, {"os": {"kernel": f"6.{number}"}})
                await applied(server.agent, node_id)
                assert await server.operator.data("{ nodes { totalCount } }")
    await database.close()


async def test_a_statement_of_the_feed_that_fails_is_tried_again(
    database: Database, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    failures = [asyncpg.QueryCanceledError("canceling statement"), asyncpg.DiskFullError("no space"), KeyError("a bug")]

    async def failing(*arguments: Any) -> Any:  # noqa: ANN401 - the store's signature
        if failures:
            raise failures.pop()
        return await events_after(*arguments)

    monkeypatch.setattr(feed, "events_after", failing)
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(OTHER, after=cursor)
        await _commit(database, server.operator.tenant_id, [1])
        assert await _numbers(socket, 1) == [1]
    assert failures == []


async def test_a_cursor_older_than_the_log_is_expired_and_never_silence(database: Database, served: Served) -> None:
    server, address = served
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    await _commit(database, server.operator.tenant_id, [1, 2, 3])
    await until(lambda: server.services.feed.head == 3)
    assert await forget_all(database) == 3
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(EVENTS, after=cursor)
        assert (await socket.error())["extensions"]["code"] == "CURSOR_EXPIRED"


async def test_page_cursors_and_feed_cursors_are_refused_when_mixed_up(served: Served) -> None:
    server, address = served
    await hello(server.agent, "n1")
    page = await server.operator.data("{ nodes { pageInfo { endCursor } } feedCursor }")
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(EVENTS, after=page["nodes"]["pageInfo"]["endCursor"])
        assert (await socket.error())["extensions"]["code"] == "INVALID_INPUT"
    answer = await server.operator.send("query ($c: Cursor) { nodes(after: $c) { totalCount } }", c=page["feedCursor"])
    assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"


async def test_another_tenant_hears_nothing(served: Served) -> None:
    server, address = served
    cursor = (await server.stranger.data(CURSOR))["feedCursor"]
    async with open_socket(address, server.stranger.token) as socket:
        await socket.subscribe(EVENTS, after=cursor)
        await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
        await until(lambda: server.services.feed.head > 0)
        theirs = await report(server.stranger, "n2", {"os": {"kernel": "6.1.0"}})
        assert theirs
        heard = [(await socket.next())["events"]["type"] for _ in range(3)]
        assert heard == ["node.adopted", "node.changed", "node.inventory.changed"]
        log = await server.stranger.data("{ events { nodes { nodeId } } }")
    assert {event["nodeId"] for event in log["events"]["nodes"]} == {theirs}


async def test_a_subscription_filtered_by_nodes_hears_only_of_those_that_fit(served: Served) -> None:
    server, address = served
    cursor = (await server.operator.data(CURSOR))["feedCursor"]
    query = """
    subscription ($after: Cursor) {
      nodeInventoryChanged(after: $after, filter: {text: "wanted"}) { node { hostname } }
    }
    """
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(query, after=cursor)
        for name in ("other-1", "wanted-1", "other-2", "wanted-2"):
            await report(server.agent, name, {"os": {"kernel": "6.1.0"}})
        heard = [(await socket.next())["nodeInventoryChanged"]["node"]["hostname"] for _ in range(2)]
    assert heard == ["wanted-1", "wanted-2"]


async def _kill_listeners(postgres_url: str, database_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        name = await _database_name(database_url)
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and query ilike 'listen%'", name
        )
    finally:
        await connection.close()


async def _database_name(database_url: str) -> str:
    connection = await asyncpg.connect(database_url)
    try:
        return str(await connection.fetchval("select current_database()"))
    finally:
        await connection.close()


async def test_server_sent_events_flow_and_end_when_the_server_stops(served: Served) -> None:
    server, address = served
    request = {"query": "subscription { events { type } }"}
    headers = {"Authorization": f"Bearer {server.operator.token}", "Accept": "text/event-stream"}
    async with (
        asyncio.timeout(10),
        httpx.AsyncClient() as http,
        http.stream("POST", f"{address}/graphql", json=request, headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        await until(lambda: server.services.feed.subscribers == 1)
        await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
        told: list[str] = []
        while len(told) < 3:
            line = await anext(lines)
            told += [line.removeprefix("data: ")] if line.startswith("data: {") else []
        types = ("node.adopted", "node.changed", "node.inventory.changed")
        assert told == [f'{{"data":{{"events":{{"type":"{each}"}}}}}}' for each in types]
        server.services.stopping.set()
        assert [line async for line in lines if line.startswith("data: {")] == []
    await until(lambda: server.services.feed.subscribers == 0)


async def test_conditions_are_followed_by_their_types(served: Served) -> None:
    server, address = served
    cut = {"gpus": {"enumeration": "incomplete", "reason": "one of two answered"}}
    whole = {"gpus": {"enumeration": "complete"}}
    start = (await server.operator.data(CURSOR))["feedCursor"]
    node_id = await report(server.agent, "n1", cut)
    query = """
    subscription ($types: [String!], $after: Cursor) {
      nodeConditionChanged(types: $types, after: $after) { nodeId condition status reason noSchedule }
    }
    """
    async with (
        open_socket(address, server.operator.token) as followed,
        open_socket(address, server.operator.token) as other,
    ):
        await followed.subscribe(query, types=["InventoryDegraded"], after=start)
        await other.subscribe(query, types=["DuplicateIdentity"], after=start)
        await ingest(server.agent, node_id, whole)
        said = [(await followed.next())["nodeConditionChanged"] for _ in range(2)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await other.next()
    assert [(each["nodeId"], each["condition"], each["status"], each["noSchedule"]) for each in said] == [
        (node_id, "InventoryDegraded", "TRUE", False),
        (node_id, "InventoryDegraded", "FALSE", False),
    ]
    assert said[0]["reason"] == "EnumerationIncomplete"
