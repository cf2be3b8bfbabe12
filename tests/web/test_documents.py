"""Which text a request means: persisted and trusted documents, over HTTP, event streams and sockets."""

import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from agent import wire
from agent.client import Connection
from agent.client import connect as connect_agent
from schema.graph import build
from tests.support.server import RunningServer
from tests.support.socket import Socket, open_socket
from web.documents import DocumentRefused, Documents
from web.persisted_queries import TEXT_BYTES_MAX, PersistedQueries
from web.server import listening
from web.settings import Settings
from web.trusted_documents import ManifestRefused, own_documents, read_manifest

Served = tuple[RunningServer, str]
ROLE = "query Role { viewer { role } }"
ROLE_DATA = {"viewer": {"role": "operator"}}
EVENTS = "subscription Events { events { cursor } }"
NOBODYS = "query Nobodys { feedCursor }"
INTROSPECTION = "{ __schema { queryType { name } } }"
SCHEMA = build()._schema


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hashed(text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any part of a request
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": _sha256(text)}}, **more}


async def _ask(served: Served, request: Mapping[str, Any], **headers: str) -> httpx.Response:
    server, address = served
    sent = {"Authorization": f"Bearer {server.operator.token}", **headers}
    async with httpx.AsyncClient() as http:
        return await http.post(f"{address}/graphql", json=request, headers=sent)


async def _data(served: Served, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any data
    response = await _ask(served, request)
    answer = response.json()
    assert "errors" not in answer, answer
    assert response.status_code == 200
    return answer["data"]


async def _error(served: Served, request: Mapping[str, Any], status: int = 400) -> tuple[str, str]:
    """Return the code and the message of an answer that is one error."""
    response = await _ask(served, request)
    answer = response.json()
    assert (response.status_code, answer["data"]) == (status, None)
    (error,) = answer["errors"]
    assert error["extensions"]["requestId"] == response.headers["X-Request-Id"]
    return error["extensions"]["code"], error["message"]


async def _is_unknown(served: Served, text: str) -> bool:
    return await _error(served, _hashed(text), 200) == ("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")


async def _subscribe(socket: Socket, payload: Mapping[str, Any], id_: str = "1") -> None:
    await socket.connection.send(json.dumps({"id": id_, "type": "subscribe", "payload": payload}))


async def _socket_refusal(socket: Socket) -> tuple[str, str]:
    said = await socket.message()
    assert said["type"] == "error", said
    (error,) = said["payload"]
    assert error["extensions"]["requestId"]
    return error["extensions"]["code"], error["message"]


def _event_refusal(response: httpx.Response) -> tuple[str, str]:
    assert response.headers["Content-Type"].startswith("text/event-stream")
    events = [line for line in response.text.splitlines() if line]
    assert events[0] == "event: next"
    assert events[2] == "event: complete"
    (error,) = json.loads(events[1].removeprefix("data: "))["errors"]
    assert error["extensions"]["requestId"] == response.headers["X-Request-Id"]
    return error["extensions"]["code"], error["message"]


# Automatic persisted queries


async def test_a_hash_that_is_not_known_is_answered_as_clients_expect_and_known_once_its_text_came(
    served: Served,
) -> None:
    assert await _is_unknown(served, ROLE)
    assert await _data(served, _hashed(ROLE, query=ROLE)) == ROLE_DATA
    assert await _data(served, _hashed(ROLE)) == ROLE_DATA
    assert await _data(served, _hashed(ROLE, query="")) == ROLE_DATA
    assert await _data(served, _hashed(ROLE, query=None)) == ROLE_DATA


async def test_a_persisted_query_takes_variables_and_an_operation_name(served: Served) -> None:
    text = "query A { feedCursor } query B($id: ID!) { computeNode(id: $id) { id } }"
    asked = {"operationName": "B", "variables": {"id": "node_00000000000000000000000000"}}
    for request in (_hashed(text, query=text, **asked), _hashed(text, **asked)):
        (error,) = (await _ask(served, request)).json()["errors"]
        assert error["extensions"]["code"] == "NOT_FOUND"


async def test_a_document_id_finds_what_was_persisted_and_persists_too(served: Served) -> None:
    named = {"documentId": f"sha256:{_sha256(ROLE)}"}
    assert (await _error(served, named, 200))[0] == "PERSISTED_QUERY_NOT_FOUND"
    assert await _data(served, {**named, "query": ROLE}) == ROLE_DATA
    assert await _data(served, named) == ROLE_DATA
    assert await _data(served, _hashed(ROLE)) == ROLE_DATA


async def test_a_text_that_has_another_hash_is_refused_and_not_kept(served: Served) -> None:
    code, message = await _error(served, _hashed(ROLE, query=NOBODYS))
    assert code == "INVALID_INPUT"
    assert "is not the SHA-256 of `query`" in message
    assert await _is_unknown(served, ROLE)
    assert await _is_unknown(served, NOBODYS)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": "a" * 64}}}, "version` is 2; .* version 1"),
        ({"extensions": {"persistedQuery": {"version": "1", "sha256Hash": "a" * 64}}}, "version` is '1'"),
        ({"extensions": {"persistedQuery": {"sha256Hash": "a" * 64}}}, "`version` 1 and `sha256Hash`"),
        ({"extensions": {"persistedQuery": {"version": 1}}}, "`version` 1 and `sha256Hash`"),
        ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": 5}}}, "`version` 1 and `sha256Hash`"),
        ({"extensions": {"persistedQuery": "a" * 64}}, "`version` 1 and `sha256Hash`"),
        ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "A" * 64}}}, "lower-case"),
        ({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "a" * 63}}}, "64 lower-case"),
        ({"extensions": []}, "`extensions` must be an object"),
        ({"extensions": {"persistedQuery": None}}, "no `query`"),
        ({"documentId": "sha256:short"}, "64 lower-case"),
        ({"documentId": "Role"}, "no trusted documents"),
        ({"documentId": "Role", "query": ROLE}, "no trusted documents"),
        ({"documentId": 5}, "`documentId` must be"),
        ({"documentId": ""}, "`documentId` must be"),
        ({"documentId": "b" * 64, **_hashed(ROLE)}, "are not the same"),
    ],
)
async def test_a_request_that_names_no_document_rightly_is_told_what_is_wrong(
    served: Served, request_: dict[str, Any], said: str
) -> None:
    code, message = await _error(served, request_)
    assert code == "INVALID_INPUT"
    assert re.search(said, message), message


async def test_who_has_no_token_neither_fills_the_store_nor_learns_what_it_holds(served: Served) -> None:
    nobody = {"Authorization": "Bearer nobody"}
    assert (await _ask(served, _hashed(ROLE, query=ROLE), **nobody)).status_code == 401
    assert await _is_unknown(served, ROLE)
    await _data(served, _hashed(ROLE, query=ROLE))
    for text in (ROLE, NOBODYS):
        response = await _ask(served, _hashed(text), **nobody)
        assert response.status_code == 401
        assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_a_socket_without_a_token_neither_fills_the_store_nor_learns_what_it_holds(served: Served) -> None:
    url = served[1].replace("http", "ws", 1) + "/graphql"
    async with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")]) as connection:
        await _subscribe(Socket(connection), _hashed(ROLE, query=ROLE))
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    assert await _is_unknown(served, ROLE)


async def test_a_get_request_is_sent_to_post_before_its_document_is_looked_for(served: Served) -> None:
    server, address = served
    extensions = json.dumps(_hashed(ROLE)["extensions"])
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {server.operator.token}"}) as http:
        for _ in range(2):
            response = await http.get(f"{address}/graphql", params={"extensions": extensions})
            assert "sent by POST" in response.json()["errors"][0]["message"]
            await _data(served, _hashed(ROLE, query=ROLE))


async def test_a_socket_and_http_share_what_is_persisted(served: Served) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        await _subscribe(socket, _hashed(ROLE))
        assert await _socket_refusal(socket) == ("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
        await _subscribe(socket, _hashed(ROLE, query=ROLE))
        assert await socket.next() == ROLE_DATA
        assert (await socket.message())["type"] == "complete"
        await _subscribe(socket, _hashed(ROLE))
        assert await socket.next() == ROLE_DATA
    assert await _data(served, _hashed(ROLE)) == ROLE_DATA


async def test_a_socket_is_told_what_is_wrong_with_its_document_and_lives_on(served: Served) -> None:
    server, address = served
    async with open_socket(address, server.operator.token) as socket:
        for payload in (_hashed(ROLE, query=NOBODYS), {"documentId": 5}, {"documentId": "Role"}, {}):
            await _subscribe(socket, payload)
            assert (await _socket_refusal(socket))[0] == "INVALID_INPUT"
        await _subscribe(socket, {"query": ROLE})
        assert await socket.next() == ROLE_DATA


async def test_an_event_stream_is_subscribed_to_by_hash(served: Served) -> None:
    server, address = served
    stream = {"Accept": "text/event-stream"}
    refusal = _event_refusal(await _ask(served, _hashed(EVENTS), **stream))
    assert refusal == ("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")
    headers = {"Authorization": f"Bearer {server.operator.token}", **stream}
    for request in (_hashed(EVENTS, query=EVENTS), _hashed(EVENTS)):
        async with (
            httpx.AsyncClient(headers=headers) as http,
            http.stream("POST", f"{address}/graphql", json=request) as response,
        ):
            assert response.status_code == 200
            assert response.headers["Content-Type"].startswith("text/event-stream")


# The store's bounds


def _texts(count: int, size: int = 10) -> dict[str, str]:
    """Return texts of `size` bytes by their hashes."""
    return {_sha256(text): text for text in (f"{number:0{size}}" for number in range(count))}


def test_a_full_store_forgets_what_was_used_longest_ago() -> None:
    store = PersistedQueries(entries_max=3)
    (first, second, third, fourth), texts = _texts(4), _texts(4)
    for digest in (first, second, third):
        assert store.take(digest, texts[digest])
    assert store.find(first) == texts[first]
    assert store.take(second, texts[second])
    assert store.take(fourth, texts[fourth])
    assert store.find(third) is None
    assert [store.find(digest) for digest in (first, second, fourth)] == [texts[d] for d in (first, second, fourth)]


def test_a_store_is_bounded_by_the_bytes_of_its_texts() -> None:
    store = PersistedQueries(bytes_max=100)
    texts = _texts(12)
    for digest, text in texts.items():
        assert store.take(digest, text)
        assert store.take(digest, text)  # what is there already takes no room again
    assert [store.find(digest) is not None for digest in texts] == [False] * 2 + [True] * 10


def test_bytes_are_those_of_utf_8() -> None:
    store = PersistedQueries(bytes_max=100, text_bytes_max=60)
    kept, large = "ä" * 30, "ä" * 31
    assert store.take(_sha256(kept), kept)
    assert store.take(_sha256(large), large)
    assert store.find(_sha256(kept)) == kept
    assert store.find(_sha256(large)) is None


def test_a_text_that_is_too_large_is_executed_and_not_kept() -> None:
    documents = Documents()
    text = "{ feedCursor }".ljust(TEXT_BYTES_MAX + 1)
    assert documents.text(_hashed(text, query=text)) == text
    with pytest.raises(DocumentRefused) as refused:
        documents.text(_hashed(text))
    assert refused.value.code == "PERSISTED_QUERY_NOT_FOUND"


def test_a_text_that_is_no_unicode_is_refused_for_its_hash() -> None:
    with pytest.raises(DocumentRefused, match="is not the SHA-256"):
        Documents().text(_hashed(ROLE, query="\ud800"))


# Trusted documents


def _apollo(**documents: str) -> dict[str, Any]:
    operations = [{"id": id_, "name": "Any", "type": "query", "body": text} for id_, text in documents.items()]
    return {"format": "apollo-persisted-query-manifest", "version": 1, "operations": operations}


PLAIN = {"role-1": ROLE, f"sha256:{_sha256(EVENTS)}": EVENTS}
FORMATS = [PLAIN, _apollo(**PLAIN), {"role-1": ROLE, _sha256(EVENTS): EVENTS}]


@pytest.fixture(params=FORMATS, ids=["plain", "apollo", "bare hashes"])
async def trusting(request: pytest.FixtureRequest, server: RunningServer, tmp_path: Path) -> AsyncIterator[Served]:
    """A server that runs two documents of a manifest, in each format."""
    async with _trusting(server, tmp_path, request.param) as address:
        yield server, address


@asynccontextmanager
async def _trusting(server: RunningServer, folder: Path, manifest: object) -> AsyncIterator[str]:
    path = folder / "manifest.json"
    path.write_text(json.dumps(manifest))
    async with listening(server.services, Settings(port=0, trusted_documents=path)) as (_, address):
        yield address


async def test_a_trusted_document_runs_by_its_id_by_its_hash_and_by_its_text(trusting: Served) -> None:
    for request in (
        {"documentId": "role-1"},
        {"documentId": f"sha256:{_sha256(ROLE)}"},
        {"documentId": _sha256(ROLE)},
        {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "role-1"}}},
        {"documentId": "role-1", "query": ROLE, "operationName": "Role"},
        {"query": ROLE},
        _hashed(ROLE),
        _hashed(ROLE, query=ROLE),
    ):
        assert await _data(trusting, request) == ROLE_DATA


@pytest.mark.parametrize(
    "request_",
    [
        {"query": NOBODYS},
        {"query": ROLE + " "},
        {"query": INTROSPECTION},
        {"documentId": "role-2"},
        {"documentId": f"sha256:{_sha256(NOBODYS)}"},
        _hashed(NOBODYS),
        _hashed(NOBODYS, query=NOBODYS),
    ],
)
async def test_no_other_document_runs_and_the_answer_says_what_would(
    server: RunningServer, tmp_path: Path, request_: dict[str, Any]
) -> None:
    async with _trusting(server, tmp_path, PLAIN) as address:
        code, message = await _error((server, address), request_)
        assert code == "UNSUPPORTED"
        assert "trusted documents only" in message
        assert "FLEETGRAPH_TRUSTED_DOCUMENTS" in message


async def test_other_requests_are_refused_for_what_they_are(server: RunningServer, tmp_path: Path) -> None:
    async with _trusting(server, tmp_path, PLAIN) as address:
        for request, said in (
            ({"documentId": "role-1", "query": NOBODYS}, "not the trusted document 'role-1'"),
            (_hashed(ROLE, query=NOBODYS), "not the trusted document"),
            ({"extensions": {"persistedQuery": {"version": 3, "sha256Hash": "role-1"}}}, "speaks version 1"),
            ({}, "no `query`"),
        ):
            code, message = await _error((server, address), request)
            assert code == "INVALID_INPUT"
            assert said in message


async def test_sockets_and_event_streams_run_trusted_documents_only(trusting: Served) -> None:
    server, address = trusting
    async with open_socket(address, server.operator.token) as socket:
        for payload in ({"query": NOBODYS}, _hashed(NOBODYS, query=NOBODYS), {"documentId": "nobodys"}):
            await _subscribe(socket, payload)
            assert (await _socket_refusal(socket))[0] == "UNSUPPORTED"
        await _subscribe(socket, {"documentId": "role-1"})
        assert await socket.next() == ROLE_DATA
    stream = {"Accept": "text/event-stream"}
    assert _event_refusal(await _ask(trusting, {"query": "subscription { events { type } }"}, **stream))[0] == (
        "UNSUPPORTED"
    )
    headers = {"Authorization": f"Bearer {server.operator.token}", **stream}
    async with (
        httpx.AsyncClient(headers=headers) as http,
        http.stream("POST", f"{address}/graphql", json={"documentId": f"sha256:{_sha256(EVENTS)}"}) as response,
    ):
        assert response.status_code == 200


async def test_an_agent_works_at_a_server_that_trusts_an_empty_manifest(server: RunningServer, tmp_path: Path) -> None:
    async with (
        _trusting(server, tmp_path, {}) as address,
        connect_agent(Connection(address, server.agent.token)) as agent,
    ):
        greeting = await agent.hello(wire.Hello(identity_key="alpha", hostname="alpha"))
        node_id = greeting.node.id
        (recorded,) = await agent.record_hashes([wire.HashReport(node_id=node_id, hashes=())])
        (stored,) = await agent.ingest([wire.Sections(node_id=node_id, sections=())])
        assert (recorded.node_id, stored.node_id) == (node_id, node_id)
        for count in (1, 50):
            assert len(await agent.statuses([node_id] * count)) == count


def test_every_document_of_an_agent_is_trusted() -> None:
    written = {
        text
        for text in vars(wire).values()
        if isinstance(text, str) and re.match(r"(query|mutation|subscription)\b", text)
    }
    assert len(written) >= 3
    assert written < set(own_documents())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        (b"\xff", "is not JSON"),
        ("[]", "must be an object"),
        ('"x"', "must be an object"),
        ({"role-1": 5}, "entry 'role-1' must be the text"),
        ({"": ROLE}, "entry '': the id is empty"),
        ({"role-1": "query Role {"}, r"entry 'role-1': Syntax Error: .* \(line 1, column 13\)"),
        ({"role-1": ""}, "entry 'role-1': Syntax Error"),
        (
            {"role-1": "{ feedCursor\n nowhere }"},
            r"entry 'role-1': Cannot query field 'nowhere' .* \(line 2, column 2\)",
        ),
        ({"role-1": "type Query { a: Int }"}, "entry 'role-1': it has no operation"),
        ({"role-1": "{ " + "feedCursor " * 6000 + "}"}, "more than 5000 tokens"),
        ({"role-1": "{ " + " ".join(f"a{n}: feedCursor" for n in range(51)) + " }"}, "51 aliases"),
        ({"a" * 64: ROLE}, f"entry '{'a' * 64}': the id is a SHA-256, but that of the text is {_sha256(ROLE)}"),
        ({f"sha256:{'a' * 64}": ROLE}, "the id is a SHA-256, but"),
        ({_sha256(ROLE): ROLE, f"sha256:{_sha256(ROLE)}": NOBODYS}, "the id is a SHA-256, but"),
        ({"format": "another", "version": 1, "operations": []}, "`format` 'apollo-persisted-query-manifest'"),
        ({**_apollo(), "version": 2}, "`version` 1"),
        ({**_apollo(), "operations": {}}, "a list `operations`"),
        ({"operations": []}, "a list `operations`"),
        ({**_apollo(), "operations": [{"id": "role-1"}]}, r"operations\[0\] must have the strings `id` and `body`"),
        ({**_apollo(), "operations": [{"id": 1, "body": ROLE}]}, r"operations\[0\] must have"),
        ({**_apollo(), "operations": ["x"]}, r"operations\[0\] must have"),
        (_apollo(**{"role-1": "{ nowhere }"}), r"operations\[0\] \(Any\): Cannot query field 'nowhere'"),
        (
            {**_apollo(), "operations": [{"id": "a", "body": ROLE}, {"id": "a", "body": NOBODYS}]},
            r"operations\[1\] \(a\): the id 'a' stands for another document too",
        ),
    ],
)
def test_a_manifest_with_a_defect_is_refused_with_its_place_and_the_reason(
    tmp_path: Path, content: object, said: str
) -> None:
    path = tmp_path / "manifest.json"
    encoded = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(encoded.encode() if isinstance(encoded, str) else encoded)
    with pytest.raises(ManifestRefused) as refused:
        read_manifest(path, SCHEMA)
    assert re.search(said, str(refused.value)), refused.value
    assert f"FLEETGRAPH_TRUSTED_DOCUMENTS={path}: " in str(refused.value)


def test_a_manifest_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(ManifestRefused, match="cannot be read: "):
            read_manifest(path, SCHEMA)
