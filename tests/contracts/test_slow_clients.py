"""Clients that take their events slowly or not at all: nobody waits for them, little waits for them, none is lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, cast

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from db.database import Database
from tests.support.events import FOLLOW, commit_numbers
from tests.support.program import server_process
from tests.support.server import RunningServer, feed_cursor, listening_server
from tests.support.socket import Socket, narrow_socket, open_narrow_socket, open_socket
from tests.support.waiting import until
from web.connections import TOO_SLOW
from web.settings import Settings

SLOW_SECONDS = 1.0
BULK = 8_000
Served = tuple[RunningServer, str]


@pytest.fixture
async def impatient(database: Database) -> AsyncIterator[Served]:
    """A server that waits for nobody long, and keeps little for anybody."""
    settings = Settings(port=0, slow_client_seconds=SLOW_SECONDS, client_buffer_bytes=16_384)
    async with listening_server(database, settings) as served:
        yield served


async def _rest(socket: Socket) -> tuple[list[int], ConnectionClosed]:
    """Return the numbers that still come, and how the socket was closed."""
    numbers: list[int] = []
    while True:
        try:
            numbers.append((await socket.next())["events"]["payload"]["n"])
        except ConnectionClosed as closed:
            return numbers, closed


async def _numbers(socket: Socket, count: int) -> list[int]:
    return [(await socket.next())["events"]["payload"]["n"] for _ in range(count)]


async def test_a_client_that_takes_nothing_is_told_where_to_go_on_and_sees_every_event_once(
    database: Database, impatient: Served
) -> None:
    server, address = impatient
    start = await feed_cursor(server.operator)
    async with open_narrow_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=start)
        await commit_numbers(database, server.operator.tenant_id, range(40), bulk=BULK)
        seen = await _numbers(socket, 2)
        socket.connection.transport.pause_reading()
        await until(lambda: server.services.feed.subscribers == 0)
        socket.connection.transport.resume_reading()  # soon enough to be told
        rest, closed = await _rest(socket)
    assert closed.rcvd is not None
    assert closed.rcvd.code == TOO_SLOW
    said, _, cursor = closed.rcvd.reason.partition("; after=")
    assert said == "too slow"
    seen += rest
    assert len(seen) < 40
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=cursor)
        seen += await _numbers(socket, 40 - len(seen))
        await commit_numbers(database, server.operator.tenant_id, [40])  # and live again
        seen += await _numbers(socket, 1)
    assert seen == list(range(41))


async def test_a_client_that_never_reads_again_is_cut_off(database: Database, impatient: Served) -> None:
    server, address = impatient
    async with open_narrow_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=await feed_cursor(server.operator))
        await commit_numbers(database, server.operator.tenant_id, range(40), bulk=BULK)
        socket.connection.transport.pause_reading()
        port = socket.connection.local_address[1]
        await until(lambda: _server_side(port) is None)
        socket.connection.transport.abort()


def _server_side(port: int) -> Any:  # noqa: ANN401 - psutil's named tuple
    """Return the server's end of a connection from this port: it runs in this process."""
    connections = psutil.Process().net_connections("tcp")
    return next((each for each in connections if each.raddr and each.raddr.port == port), None)


async def test_a_client_that_reads_slowly_is_waited_for_as_long_as_it_takes_something(
    database: Database, impatient: Served
) -> None:
    server, address = impatient
    begun = asyncio.get_running_loop().time()
    async with open_narrow_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=await feed_cursor(server.operator))
        await commit_numbers(database, server.operator.tenant_id, range(60), bulk=BULK)
        seen = []
        for _ in range(60):
            seen += await _numbers(socket, 1)
            await asyncio.sleep(SLOW_SECONDS / 20)
        await commit_numbers(database, server.operator.tenant_id, [60])
        seen += await _numbers(socket, 1)
    assert asyncio.get_running_loop().time() - begun > 2 * SLOW_SECONDS
    assert seen == list(range(61))


async def test_an_idle_client_that_answers_no_ping_is_closed(impatient: Served) -> None:
    server, address = impatient
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=await feed_cursor(server.operator))
        await until(lambda: server.services.feed.subscribers == 1)
        socket.connection.transport.pause_reading()
        await until(lambda: server.services.feed.subscribers == 0)
        socket.connection.transport.resume_reading()
        _, closed = await _rest(socket)
    assert closed.rcvd is not None
    assert closed.rcvd.code == TOO_SLOW


async def test_an_event_stream_that_nobody_reads_is_cut_off_and_goes_on_behind_the_last_event_read(
    database: Database, impatient: Served
) -> None:
    server, address = impatient
    start = await feed_cursor(server.operator)
    seen: list[int] = []
    await commit_numbers(database, server.operator.tenant_id, range(40), bulk=BULK)
    first = await _stream(address, server.operator.token, start)
    async with asyncio.timeout(10):
        events = [await _event(first[0]) for _ in range(3)]
        cast("asyncio.Transport", first[1].transport).pause_reading()
        await until(lambda: server.services.feed.subscribers == 0)
        first[1].transport.abort()
        seen += [event["n"] for event in events]
        reader, writer = await _stream(address, server.operator.token, start, last_event_id=events[-1]["id"])
        seen += [(await _event(reader))["n"] for _ in range(37)]
        writer.transport.abort()
    assert seen == list(range(40))


async def _stream(
    address: str, token: str, after: str, last_event_id: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for an event stream by hand, to read it or not."""
    body = json.dumps({"query": FOLLOW, "variables": {"after": after}}).encode()
    reader, writer = await asyncio.open_connection(sock=narrow_socket(address), limit=4 * BULK)
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n"
        f"Last-Event-ID: {last_event_id}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    return reader, writer


async def _event(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Return the id and the number of the next event, past the lines of HTTP and of comments."""
    found: dict[str, Any] = {}
    while "n" not in found:
        line = (await reader.readline()).decode().rstrip()
        assert line or not reader.at_eof()
        name, _, value = line.partition(": ")
        if name == "id":
            found["id"] = value
        elif name == "data" and value:
            found["n"] = json.loads(value)["data"]["events"]["payload"]["n"]
    return found


async def test_what_waits_for_many_clients_that_do_not_read_is_bounded_and_the_others_are_not_delayed(
    database: Database, database_url: str
) -> None:
    clients, events, bulk = 25, 40, 100_000
    settings = {"FLEETGRAPH_SLOW_CLIENT_SECONDS": "60", "FLEETGRAPH_CLIENT_BUFFER_BYTES": "16384"}
    async with server_process(database_url, **settings) as server, AsyncExitStack() as stack:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        async with database.session() as tx:
            tenant_id = str(await tx.value("select tenant_id from api_tokens"))
        for _ in range(clients):
            opened = open_narrow_socket(server.address, server.token)
            stalled = await stack.enter_async_context(opened)
            await stalled.subscribe(FOLLOW)
            stalled.connection.transport.pause_reading()
            stack.callback(stalled.connection.transport.abort)
        lively = await stack.enter_async_context(open_socket(server.address, server.token))
        await lively.subscribe(FOLLOW)
        await lively.subscribe("{ feedCursor }", id="2")
        assert [(await lively.message())["type"] for _ in range(2)] == ["next", "complete"]
        before = process.memory_info().rss
        for number in range(events):
            await commit_numbers(database, tenant_id, [number], bulk=bulk)
            assert await _numbers(lively, 1) == [number]
        grown = process.memory_info().rss - before
    # Unbounded it would be all of it: 25 clients, 40 events, 100 kB each.
    assert grown < clients * events * bulk / 4


async def test_what_waits_for_a_client_with_many_subscriptions_and_all_of_the_log_behind_it_is_bounded(
    database: Database, database_url: str
) -> None:
    subscriptions, events, bulk = 60, 64, 50_000
    settings = {"FLEETGRAPH_SLOW_CLIENT_SECONDS": "60", "FLEETGRAPH_CLIENT_BUFFER_BYTES": "16384"}
    async with server_process(database_url, **settings) as server, AsyncExitStack() as stack:
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        async with database.session() as tx:
            tenant_id = str(await tx.value("select tenant_id from api_tokens"))
        lively = await stack.enter_async_context(open_socket(server.address, server.token))
        await lively.subscribe("{ feedCursor }")
        cursor = (await lively.next())["feedCursor"]
        assert (await lively.message())["type"] == "complete"
        await commit_numbers(database, tenant_id, range(events), bulk=bulk)
        await lively.subscribe(FOLLOW, after=cursor)
        assert await _numbers(lively, events) == list(range(events))
        before = process.memory_info().rss
        stalled = await stack.enter_async_context(open_narrow_socket(server.address, server.token))
        stalled.connection.transport.pause_reading()
        stack.callback(stalled.connection.transport.abort)
        for number in range(subscriptions):
            await stalled.subscribe(FOLLOW, id=str(number), after=cursor)
        for number in range(events, events + 20):
            await commit_numbers(database, tenant_id, [number], bulk=bulk)
            assert await _numbers(lively, 1) == [number]
        grown = process.memory_info().rss - before
    # What was made for each of them at once would be 60 subscriptions, 64 events, 50 kB each.
    assert grown < subscriptions * events * bulk / 4
