"""Server-sent events: each with its cursor as id, resumed by Last-Event-ID, opened by GET with a ticket."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from db.database import Database
from tests.support.event_stream import Event, events, open_stream, open_whole_stream, with_data
from tests.support.events import FOLLOW, commit_numbers
from tests.support.server import RunningServer, feed_cursor, report, revoke_tokens
from tests.support.socket import open_socket
from tests.support.waiting import until
from web import event_streams
from web.sockets import FORBIDDEN

TICKET = "mutation { createStreamTicket { ticket expiresAt } }"
Served = tuple[RunningServer, str]


def _number(event: Event) -> int:
    return int(event.answer["data"]["events"]["payload"]["n"])


async def _ticket(server: RunningServer) -> str:
    return str((await server.operator.data(TICKET))["createStreamTicket"]["ticket"])


async def _get(address: str, params: dict[str, str], **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=10) as http:
        return await http.get(f"{address}/graphql", params=params, headers={"Accept": "text/event-stream", **headers})


async def test_a_stream_that_is_opened_anew_goes_on_behind_its_last_event(database: Database, served: Served) -> None:
    server, address = served
    variables = {"after": await feed_cursor(server.operator)}
    await commit_numbers(database, server.operator.tenant_id, range(5))
    async with open_stream(address, server.operator, FOLLOW, variables) as told:
        first = [await anext(told) for _ in range(2)]
    assert [_number(event) for event in first] == [0, 1]
    assert [event.fields["id"] for event in first] == [event.answer["data"]["events"]["cursor"] for event in first]
    last = {"Last-Event-ID": first[-1].fields["id"]}
    async with open_stream(address, server.operator, FOLLOW, variables, **last) as told:
        assert [_number(await anext(told)) for _ in range(3)] == [2, 3, 4]


async def test_a_last_event_id_that_is_no_cursor_is_refused(served: Served) -> None:
    server, address = served
    async with open_stream(address, server.operator, FOLLOW, {}, **{"Last-Event-ID": "7"}) as told:
        assert (await anext(told)).answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"
        assert (await anext(told)).fields["event"] == "complete"


async def test_a_silent_stream_is_kept_open_by_comments(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    server, address = served
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.05)
    async with open_whole_stream(address, server.operator, FOLLOW, {}) as told:
        assert [(await anext(told)).comments for _ in range(3)] == [["nothing new"]] * 3


async def test_who_is_cut_off_before_an_event_or_long_after_one_knows_where_to_go_on(
    database: Database, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    monkeypatch.setattr(event_streams, "HEARTBEAT_SECONDS", 0.05)
    async with open_whole_stream(address, server.operator, FOLLOW, {}) as told:
        start = (await anext(told)).fields
        assert start.keys() == {"id"}
        await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})  # nothing that is followed
        later = start
        async with asyncio.timeout(10):
            while later in ({}, start):
                later = (await anext(told)).fields
        assert later.keys() == {"id"}
    await commit_numbers(database, server.operator.tenant_id, [7])
    for place in (start, later):
        async with open_stream(address, server.operator, FOLLOW, {}, **{"Last-Event-ID": place["id"]}) as told:
            assert (await anext(told)).answer["data"]["events"]["payload"]["n"] == 7


async def test_clients_that_leave_take_their_streams_with_them(served: Served) -> None:
    server, address = served
    for _ in range(3):
        async with open_stream(address, server.operator, FOLLOW, {}):
            await until(lambda: server.services.feed.subscribers == 1)
        await until(lambda: server.services.feed.subscribers == 0)


async def test_a_ticket_opens_a_stream_by_get(database: Database, served: Served) -> None:
    server, address = served
    params = {"query": FOLLOW, "variables": json.dumps({"after": await feed_cursor(server.operator)})}
    params["ticket"] = await _ticket(server)
    await commit_numbers(database, server.operator.tenant_id, range(2))
    async with (
        httpx.AsyncClient(timeout=10) as http,
        http.stream("GET", f"{address}/graphql", params=params, headers={"Accept": "text/event-stream"}) as answer,
    ):
        told = events(answer)
        assert (await anext(told)).fields == {"retry": "2000"}
        told = with_data(told)
        assert [_number(await anext(told)) for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("query", ["{ feedCursor }", TICKET, 'mutation { cordonNode(id: "x") { id } }'])
async def test_get_opens_nothing_but_subscriptions(served: Served, query: str) -> None:
    server, address = served
    answer = await _get(address, {"query": query, "ticket": await _ticket(server)})
    data = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    assert "sent by POST" in json.loads(data[0].removeprefix("data: "))["errors"][0]["message"]
    assert len(data) == 1


async def test_a_ticket_opens_nothing_when_it_is_unknown_too_old_or_used_as_a_token(
    database: Database, served: Served
) -> None:
    server, address = served
    ticket = await _ticket(server)
    assert (await _get(address, {"query": FOLLOW, "ticket": "fg_ticket_x"})).status_code == 401
    assert (await _get(address, {"query": FOLLOW, "ticket": server.operator.token})).status_code == 401
    assert (await _get(address, {"query": FOLLOW}, Authorization=f"Bearer {ticket}")).status_code == 401
    async with database.transaction() as tx:
        await tx.execute("update stream_tickets set expires_at = $1", datetime.now(UTC) - timedelta(seconds=1))
    assert (await _get(address, {"query": FOLLOW, "ticket": ticket})).status_code == 401
    await _ticket(server)
    async with database.session() as tx:
        assert await tx.value("select count(*) from stream_tickets") == 1  # the old one went with the new one


async def test_a_ticket_ends_with_the_token_that_bought_it(database: Database, served: Served) -> None:
    server, address = served
    ticket = await _ticket(server)
    await revoke_tokens(database, server.operator)
    answer = await _get(address, {"query": FOLLOW, "ticket": ticket})
    assert answer.status_code == 401
    assert "revoked" in answer.json()["errors"][0]["message"]


async def test_revoking_a_token_ends_its_sockets_and_streams_and_says_so(database: Database, served: Served) -> None:
    server, address = served
    async with (
        asyncio.timeout(20),
        open_socket(address, server.operator.token) as socket,
        open_socket(address, server.stranger.token) as another,
        open_stream(address, server.operator, FOLLOW, {}) as told,
    ):
        await socket.subscribe(FOLLOW)
        await another.subscribe(FOLLOW)
        await until(lambda: server.services.feed.subscribers == 3)
        await revoke_tokens(database, server.operator)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.message()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (FORBIDDEN, "Forbidden: this token was revoked")
        said = await anext(told)
        assert said.answer["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        assert "id" not in said.fields
        assert (await anext(told)).fields["event"] == "complete"
        assert await anext(told, None) is None
        await commit_numbers(database, server.stranger.tenant_id, [1])
        assert (await another.next())["events"]["payload"]["n"] == 1
