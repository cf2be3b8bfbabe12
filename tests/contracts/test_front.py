"""The front: large pages in pieces, what fails on the way, what an operation may cost, and what is counted."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from starlette.types import Message

from db.database import Database, Reader
from db.identifiers import new_id
from domain.access import Role
from schema.answers import STREAM_ROWS
from schema.plans import COST_MAX
from tests.support.server import RunningServer, running_server
from web import front
from web.authentication import issue_token

NODES = 3 * STREAM_ROWS + 50
PAGE = """
query ($first: Int!) {
  nodes(first: $first) { pageInfo { hasNextPage endCursor } nodes { id labels { key } } }
}
"""


@pytest.fixture
async def fleet(database: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as server:
        async with database.transaction() as tx:
            await tx.execute(
                """
                insert into nodes (id, tenant_id, identity_key, agent_labels)
                select 'node_' || lpad(i::text, 26, '0'), $1, i::text,
                    (select jsonb_object_agg('key' || k, 'v') from generate_series(1, 20) k)
                from generate_series(1, $2::int) i
                """,
                server.operator.tenant_id,
                NODES,
            )
        yield server


async def _send(
    server: RunningServer,
    query: str,
    sent: list[Message],
    *,
    deaf_after: int | None = None,
    **variables: Any,  # noqa: ANN401 - any variables
) -> None:
    """Send a request as uvicorn does, and keep every message of the answer, unless the client stops to read."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = [
        (b"host", b"test"),
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {server.operator.token}".encode()),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/graphql",
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "server": ("test", 80),
        "client": ("test", 1),
        "headers": headers,
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if deaf_after is not None and len(sent) >= deaf_after:
            await asyncio.Event().wait()
        sent.append(message)

    await server.app(scope, receive, send)


def _bodies(sent: list[Message]) -> list[bytes]:
    return [message["body"] for message in sent if message["type"] == "http.response.body"]


async def test_a_large_page_is_sent_as_it_is_read(fleet: RunningServer) -> None:
    sent: list[Message] = []
    await _send(fleet, PAGE, sent, first=1000)
    page = json.loads(b"".join(_bodies(sent)))["data"]["nodes"]
    assert len(page["nodes"]) == NODES
    assert page["pageInfo"]["hasNextPage"] is False
    rows = [body.count(b'"id"') for body in _bodies(sent)]
    assert max(rows) <= STREAM_ROWS
    assert sum(rows) == NODES
    assert not any(name == b"content-length" for name, _ in sent[0]["headers"])


async def test_what_a_piece_holds_does_not_grow_with_the_page(fleet: RunningServer) -> None:
    largest = []
    for first in (STREAM_ROWS + 1, NODES):
        sent: list[Message] = []
        await _send(fleet, PAGE, sent, first=first)
        largest.append(max(len(body) for body in _bodies(sent)))
    assert largest[1] <= largest[0] * 1.01


async def test_a_small_page_is_one_message_with_its_length(fleet: RunningServer) -> None:
    sent: list[Message] = []
    await _send(fleet, PAGE, sent, first=STREAM_ROWS)
    (body,) = _bodies(sent)
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(body)).encode()
    assert len(json.loads(body)["data"]["nodes"]["nodes"]) == STREAM_ROWS


async def test_an_answer_that_fails_in_its_middle_does_not_end_like_a_whole_one(
    fleet: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Reader.batches

    async def cut(self: Reader, *args: Any) -> AsyncIterator[Any]:  # noqa: ANN401 - as Reader has it
        async for rows in whole(self, *args):
            yield rows
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    monkeypatch.setattr(Reader, "batches", cut)
    sent: list[Message] = []
    with pytest.raises(asyncpg.ConnectionDoesNotExistError):
        await _send(fleet, PAGE, sent, first=1000)
    assert all(message.get("more_body") for message in sent[1:])
    monkeypatch.undo()
    assert (await fleet.operator.data(PAGE, first=1))["nodes"]["nodes"]


async def test_what_is_refused_beside_a_large_page_is_told_behind_it(fleet: RunningServer) -> None:
    sent: list[Message] = []
    query = """
    {
      a: computeNode(id: "x") { id }
      nodes(first: 1000) { nodes { id } }
      b: snapshot(id: "y") { id }
      sites { totalCount }
    }
    """
    await _send(fleet, query, sent)
    assert [message["type"] for message in sent].count("http.response.start") == 1
    answer = json.loads(b"".join(_bodies(sent)))
    assert list(answer["data"]) == ["a", "nodes", "b", "sites"]
    assert len(answer["data"]["nodes"]["nodes"]) == NODES
    assert answer["data"]["a"] is answer["data"]["b"] is None
    assert [(error["path"], error["extensions"]["code"]) for error in answer["errors"]] == [
        (["a"], "NOT_FOUND"),
        (["b"], "NOT_FOUND"),
    ]
    nulled = await fleet.operator.send("{ nodes(first: 1000) { nodes { id } } sites(first: -1) { totalCount } }")
    assert nulled["data"] is None
    assert [error["path"] for error in nulled["errors"]] == [["sites"]]


async def test_a_client_that_does_not_read_holds_no_connection_for_ever(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "SEND_SECONDS_MAX", 0.2)
    database = await Database.connect(database_url, size_max=2)
    async with running_server(database, reconcile=False) as server:
        async with database.transaction() as tx:
            await tx.execute(
                "insert into nodes (id, tenant_id, identity_key) select 'n' || i, $1, i from generate_series(1, 999) i",
                server.operator.tenant_id,
            )

        async def once() -> None:
            with pytest.raises(TimeoutError):
                await _send(server, PAGE, [], deaf_after=2, first=1000)

        async with asyncio.timeout(20):
            await asyncio.gather(*(once() for _ in range(6)))
            assert len((await server.operator.data(PAGE, first=5))["nodes"]["nodes"]) == 5
    await database.close()


async def test_a_read_that_fails_leaves_its_siblings_their_answer(
    fleet: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Reader.texts

    async def failing(self: Reader, compiled: Any, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - as Reader has it
        if "inventory_snapshots" in compiled.text:
            raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")
        return await whole(self, compiled, *args, **more)

    monkeypatch.setattr(Reader, "texts", failing)
    answer = await fleet.operator.send('{ a: computeNode(id: "x") { id } b: snapshot(id: "inv") { id } }')
    assert answer["data"] == {"a": None, "b": None}
    assert [(error["path"], error["extensions"]["code"]) for error in answer["errors"]] == [
        (["a"], "NOT_FOUND"),
        (["b"], "UNAVAILABLE"),
    ]


@pytest.mark.parametrize("compiled_reads", [True, False])
async def test_a_read_that_may_bring_too_much_is_refused_before_it_runs(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, compiled_reads: bool
) -> None:
    query = """
    query ($n: Int!) {
      nodes(first: $n) { nodes { devices(first: 1000) { nodes { id index node { id hostname } } } } }
    }
    """

    async def unread(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise AssertionError("it ran")

    async with running_server(database, reconcile=False, compiled_reads=compiled_reads) as server:
        assert (await server.operator.data(query, n=10))["nodes"]["nodes"] == []
        for method in ("texts", "fetch", "batches"):
            monkeypatch.setattr(Reader, method, unread)
        answer = await server.operator.send(query, n=1000)
    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert f"at most {COST_MAX:,}" in error["message"]
    assert error["path"] == ["nodes"]


async def test_what_is_answered_is_counted_by_its_entrance_and_its_reads(fleet: RunningServer) -> None:
    await fleet.operator.data("{ nodes { totalCount } sites { totalCount } }")
    await fleet.operator.data("{ nodes { totalCount } viewer { name } }")
    await fleet.operator.data("{ nodes(first: 1) { nodes { latestSnapshot { diff { changes { type } } } } } }")
    await fleet.operator.send('{ computeNode(id: "x") { id } }')
    headers = {"Authorization": f"Bearer {fleet.operator.token}"}
    text = (await fleet.operator.http.get("/metrics", headers=headers)).text
    for line in (
        'fleetgraph_operations_total{entrance="front",outcome="answered"} 1.0',
        'fleetgraph_operations_total{entrance="front",outcome="failed"} 1.0',
        'fleetgraph_operations_total{entrance="graph",outcome="answered"} 2.0',
        'fleetgraph_reads_total{field="nodes",way="compiled"} 2.0',
        'fleetgraph_reads_total{field="nodes",way="executed"} 1.0',
        'fleetgraph_reads_total{field="sites",way="compiled"} 1.0',
    ):
        assert line in text


async def test_a_revoked_token_is_refused_a_moment_later(fleet: RunningServer) -> None:
    database = fleet.services.database
    async with database.transaction() as tx:
        token = await issue_token(tx, fleet.operator.tenant_id, Role.OPERATOR, "to be revoked")

    async def status() -> int:
        answer = await fleet.operator.http.post(
            "/graphql", json={"query": "{ feedCursor }"}, headers={"Authorization": f"Bearer {token}"}
        )
        return answer.status_code

    assert await status() == 200
    async with database.transaction() as tx:
        await tx.execute("update api_tokens set revoked_at = now() where name = 'to be revoked'")
    async with asyncio.timeout(10):
        while await status() != 401:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.1)


async def test_all_root_fields_and_the_feed_cursor_read_one_snapshot(
    fleet: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes appear between the statements of one operation, and none of its fields sees them."""
    whole = Reader.texts
    tenant = fleet.operator.tenant_id

    async def while_nodes_appear(self: Reader, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - as Reader has it
        rows = await whole(self, *args, **more)
        async with fleet.services.database.transaction() as tx:
            await tx.execute(
                "insert into nodes (id, tenant_id, identity_key) values ($1, $2, $1)", new_id("node"), tenant
            )
        return rows

    monkeypatch.setattr(Reader, "texts", while_nodes_appear)
    fields = " ".join(f"n{number}: nodes {{ totalCount }}" for number in range(5))
    found = await fleet.operator.data(f"{{ {fields} feedCursor }}")
    assert {found[f"n{number}"]["totalCount"] for number in range(5)} == {NODES}
