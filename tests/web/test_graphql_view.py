"""Requests and messages that are refused before anything is executed: each with a code, over every transport."""

import json
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.server import RunningServer
from tests.support.socket import Socket, open_socket
from web.sockets import SUBSCRIPTIONS_PER_SOCKET_MAX

Served = tuple[RunningServer, str]
SUBSCRIPTION = "subscription { events { cursor } }"
TWO = "query A { feedCursor } query B { __typename }"


async def _post(server: RunningServer, content: str | bytes, **headers: str) -> httpx.Response:
    sent = {"Authorization": f"Bearer {server.operator.token}", "Content-Type": "application/json", **headers}
    return await server.operator.http.post("/graphql", content=content, headers=sent)


async def _request(server: RunningServer, query: str, **more: Any) -> httpx.Response:  # noqa: ANN401 - any JSON
    return await _post(server, json.dumps({"query": query, **more}))


def _refusal(response: httpx.Response) -> str:
    """Return the message of a response that holds one INVALID_INPUT and nothing else."""
    assert response.headers["Content-Type"].startswith("application/json")
    answer = response.json()
    assert answer["data"] is None
    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert error["extensions"]["requestId"] == response.headers["X-Request-Id"]
    return str(error["message"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("null", "must be a JSON object"),
        ('"x"', "must be a JSON object"),
        ("5", "must be a JSON object"),
        ("[]", "must be a JSON object"),
        ('[{"query": "{ feedCursor }"}]', "must be a JSON object"),
        ("", "as JSON"),
        ("{ feedCursor }", "as JSON"),
        (b"\xff\xfe", "as JSON"),
        ("{}", "no `query`"),
        ('{"query": ""}', "no `query`"),
        ('{"query": 5}', "`query` must be a string"),
        ('{"query": "{ feedCursor }", "variables": []}', "`variables` must be an object"),
        ('{"query": "{ feedCursor }", "operationName": 5}', "`operationName` must be a string"),
    ],
)
async def test_a_body_that_is_no_request_gets_400_and_is_told_why(
    server: RunningServer, body: str | bytes, said: str
) -> None:
    response = await _post(server, body)
    assert response.status_code == 400
    assert said in _refusal(response)


async def test_other_content_types_and_methods_are_refused_as_graphql_errors(server: RunningServer) -> None:
    response = await _post(server, "query=x", **{"Content-Type": "text/plain"})
    assert response.status_code == 400
    assert "content type" in _refusal(response)
    headers = {"Authorization": f"Bearer {server.operator.token}"}
    response = await server.operator.http.put("/graphql", headers=headers)
    assert response.status_code == 405
    assert "GET and POST" in _refusal(response)
    response = await server.operator.http.get("/graphql", params={"query": "{ feedCursor }"}, headers=headers)
    assert "sent by POST" in _refusal(response)


async def test_a_request_without_a_token_is_told_its_request_id(server: RunningServer) -> None:
    response = await _post(server, "{}", Authorization="Bearer nobody")
    assert response.status_code == 401
    (error,) = response.json()["errors"]
    assert error["extensions"] == {"code": "UNAUTHENTICATED", "requestId": response.headers["X-Request-Id"]}


async def test_a_syntax_error_is_invalid_input_every_time(server: RunningServer) -> None:
    for _ in range(2):
        assert "Syntax Error" in _refusal(await _request(server, "{ feedCursor "))


@pytest.mark.parametrize("query", ["{ a" * 2000 + "}" * 2000, "{ " + "feedCursor " * 6000 + "}"])
async def test_a_document_too_deep_or_too_long_to_parse_is_invalid_input(server: RunningServer, query: str) -> None:
    assert "Syntax Error" in _refusal(await _request(server, query))


async def test_an_unknown_operation_name_is_invalid_input(server: RunningServer) -> None:
    assert "'C'" in _refusal(await _request(server, TWO, operationName="C"))
    assert "no operation" in _refusal(await _request(server, "fragment F on Query { feedCursor }"))


async def test_several_operations_need_a_name_to_choose_by(server: RunningServer) -> None:
    assert "`operationName`" in _refusal(await _request(server, TWO))
    assert "`operationName`" in _refusal(await _request(server, TWO, operationName=None))
    assert (await _request(server, TWO, operationName="B")).json()["data"] == {"__typename": "Query"}
    assert (await _request(server, "query A { __typename }")).json()["data"] == {"__typename": "Query"}


@pytest.mark.parametrize("accept", ["application/json", "multipart/mixed;boundary=graphql;subscriptionSpec=1.0"])
async def test_a_subscription_without_a_stream_is_told_where_to_go(server: RunningServer, accept: str) -> None:
    response = await _post(server, json.dumps({"query": SUBSCRIPTION}), Accept=accept)
    said = _refusal(response)
    assert "graphql-transport-ws" in said
    assert "text/event-stream" in said


@pytest.mark.parametrize("query", ["subscription {", TWO, "{ nowhere }"])
async def test_an_event_stream_carries_the_refusal(server: RunningServer, query: str) -> None:
    response = await _post(server, json.dumps({"query": query}), Accept="text/event-stream")
    (data,) = [line for line in response.text.splitlines() if line.startswith("data: {")]
    (error,) = json.loads(data.removeprefix("data: "))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert error["extensions"]["requestId"] == response.headers["X-Request-Id"]


async def _still_answers(socket: Socket) -> None:
    await socket.subscribe("{ __typename }", id="after")
    assert await socket.next() == {"__typename": "Query"}


@pytest.mark.parametrize("query", ["subscription {", "", TWO, "{ nowhere }", "fragment F on Query { feedCursor }"])
async def test_a_socket_gets_an_error_message_for_its_operation_and_lives_on(served: Served, query: str) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(query)
        said = await socket.message()
        assert (said["type"], said["id"]) == ("error", "1")
        (error,) = said["payload"]
        assert error["extensions"]["code"] == "INVALID_INPUT"
        assert error["extensions"]["requestId"]
        await _still_answers(socket)


async def test_a_socket_gets_an_error_message_for_an_unknown_operation_name(served: Served) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        message = {"id": "1", "type": "subscribe", "payload": {"query": TWO, "operationName": "C"}}
        await socket.connection.send(json.dumps(message))
        assert (await socket.error())["extensions"]["code"] == "INVALID_INPUT"
        await _still_answers(socket)


@pytest.mark.parametrize(
    "message",
    [
        "[]",
        "null",
        "5",
        '"x"',
        "{",
        b"{}",
        "{}",
        '{"type": []}',
        '{"type": "unheard"}',
        '{"type": "complete"}',
        '{"type": "complete", "id": {}}',
        '{"type": "subscribe", "id": [], "payload": {"query": "{ feedCursor }"}}',
        '{"type": "subscribe", "id": "1"}',
        '{"type": "subscribe", "id": "1", "payload": []}',
        '{"type": "subscribe", "id": "1", "payload": {"query": 5}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{ feedCursor }", "variables": []}}',
        '{"type": "subscribe", "id": "1", "payload": {"query": "{ feedCursor }", "operationName": 5}}',
    ],
)
async def test_a_message_that_is_not_of_the_protocol_closes_the_socket_with_4400(
    served: Served, message: str | bytes
) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        await socket.connection.send(message)
        with pytest.raises(ConnectionClosed) as closed:
            await socket.message()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4400


async def test_a_socket_that_runs_too_many_operations_is_told_so(served: Served) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        for number in range(SUBSCRIPTIONS_PER_SOCKET_MAX):
            await socket.subscribe(SUBSCRIPTION, id=str(number))
        await socket.subscribe(SUBSCRIPTION, id="one too many")
        said = await socket.message()
        assert (said["type"], said["id"]) == ("error", "one too many")
        assert said["payload"][0]["extensions"]["code"] == "RATE_LIMITED"
        assert said["payload"][0]["extensions"]["requestId"]
