"""Access: every root field asks first, and another tenant's records do not exist, by whichever entrance one comes."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    get_named_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
    is_required_argument,
    is_required_input_field,
)

from db.database import Database
from domain.access import Role
from domain.ids import TokenId
from resolvers.context import Context
from schema.compiled import CompiledOperations, LeftToTheGraph
from schema.graph import build
from tests.support.server import RunningServer, report, running_server
from web.authentication import authenticate, issue_token
from web.front import Front

SCHEMA = build()
ROOTS = {
    "query": SCHEMA._schema.query_type,
    "mutation": SCHEMA._schema.mutation_type,
    "subscription": SCHEMA._schema.subscription_type,
}
FIELDS = [(kind, name) for kind, root in ROOTS.items() if root is not None for name in root.fields]
NEEDS_NO_TENANT: set[str] = set()
"""Root fields that answer anybody; none so far."""
LEFT_TO_THE_GRAPH = {"fleetDiff", "gpuModels", "inventoryDiff", "normalizeGpuProduct", "viewer", "xidCatalog"}
"""Root fields that are no compiled reads."""


def _literal(kind: GraphQLInputType) -> str:
    if is_non_null_type(kind):
        return _literal(kind.of_type)
    if is_list_type(kind):
        return f"[{_literal(kind.of_type)}]"
    if isinstance(kind, GraphQLInputObjectType):
        needed = {name: field for name, field in kind.fields.items() if is_required_input_field(field)}
        return "{" + ", ".join(f"{name}: {_literal(field.type)}" for name, field in needed.items()) + "}"
    if isinstance(kind, GraphQLEnumType):
        return str(next(iter(kind.values)))
    return {"Int": "1", "Boolean": "true", "DateTime": '"2026-01-01T00:00:00Z"'}.get(str(kind), '"x"')


def _operation(kind: str, name: str) -> str:
    root = ROOTS[kind]
    assert root is not None
    field: GraphQLField = root.fields[name]
    needed: dict[str, GraphQLArgument] = {key: arg for key, arg in field.args.items() if is_required_argument(arg)}
    given = ", ".join(f"{key}: {_literal(argument.type)}" for key, argument in needed.items())
    selection = "" if is_leaf_type(get_named_type(field.type)) else " { __typename }"
    return f"{kind} {{ {name}{f'({given})' if given else ''}{selection} }}"


@pytest.fixture(params=["front", "graph", "plain"])
async def server(request: pytest.FixtureRequest, database: Database) -> AsyncIterator[RunningServer]:
    """The server as it is; without its front, so that the graph compiles reads; and executing field by field."""
    async with running_server(database, compiled_reads=request.param != "plain") as running:
        if request.param == "graph":
            running.app.user_middleware = [
                each for each in running.app.user_middleware if getattr(each.cls, "__name__", None) != Front.__name__
            ]
        yield running


@pytest.fixture
async def one_server(database: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as running:
        yield running


@pytest.mark.parametrize(("kind", "name"), FIELDS)
async def test_every_root_field_refuses_who_has_no_token(one_server: RunningServer, kind: str, name: str) -> None:
    server = one_server
    context = Context(server.services, "req")
    errors: list[Any] = []
    async for result in await SCHEMA.stream(_operation(kind, name), context_value=context):
        errors = getattr(result, "errors", None) or []
        break
    codes = [error.extensions["code"] for error in errors]
    assert codes == ([] if name in NEEDS_NO_TENANT else ["UNAUTHENTICATED"])


@pytest.mark.parametrize("name", [name for kind, name in FIELDS if kind == "query"])
async def test_the_front_asks_every_root_field_it_answers_for_permission(one_server: RunningServer, name: str) -> None:
    operations = CompiledOperations(SCHEMA._schema)
    operation = operations.find(_operation("query", name), None)
    context = Context(one_server.services, "req").operation(snapshot=True)
    try:
        answer = await operations.execute(operation, {}, context)
    except LeftToTheGraph:
        assert name in LEFT_TO_THE_GRAPH
        return
    finally:
        await context.end()
    assert name not in LEFT_TO_THE_GRAPH
    codes = [error["extensions"]["code"] for error in json.loads(answer.text)["errors"]]
    assert codes == ["UNAUTHENTICATED"]


async def test_another_tenants_records_are_not_found(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-a1b2"}]}})
    snapshot_id = (
        await server.operator.data("query ($id: ID!) { computeNode(id: $id) { latestSnapshot { id } } }", id=node_id)
    )["computeNode"]["latestSnapshot"]["id"]
    attempts = [
        f'{{ computeNode(id: "{node_id}") {{ id }} }}',
        f'{{ node(id: "{node_id}") {{ id }} }}',
        f'{{ node(id: "{snapshot_id}") {{ id }} }}',
        '{ device(id: "GPU-a1b2") { id } }',
        f'{{ snapshot(id: "{snapshot_id}") {{ id }} }}',
        f'{{ snapshot(nodeId: "{node_id}") {{ id }} }}',
        f'{{ inventoryDiff(nodeId: "{node_id}") {{ changes {{ type }} }} }}',
        f'{{ inventoryDiff(nodeId: "{node_id}", from: {{id: "{snapshot_id}"}}) {{ changes {{ type }} }} }}',
    ]
    for attempt in attempts:
        assert "errors" not in await server.operator.send(attempt), attempt
        answer = await server.stranger.send(attempt)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"], attempt
    lists = """
    { nodes { totalCount } devices { totalCount } sites { totalCount } pools { totalCount } events { nodes { id } } }
    """
    found = await server.stranger.data(lists)
    assert found["nodes"]["totalCount"] == found["devices"]["totalCount"] == 0
    assert found["events"]["nodes"] == []


async def test_a_stranger_can_report_nothing_for_our_node(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    record = """
    mutation {
      recordInventoryHashes(entries: [{nodeId: "%s", hashes: [{name: "os", sha256: "%s"}]}]) { error { code } }
    }
    """
    answer = await server.stranger.data(record % (node_id, "0" * 64))
    assert answer["recordInventoryHashes"][0]["error"]["code"] == "NOT_FOUND"


async def test_the_same_identity_in_two_tenants_is_two_nodes(server: RunningServer) -> None:
    ours = await report(server.agent, "same", {"os": {"kernel": "6.1.0"}})
    theirs = await report(server.stranger, "same", {"os": {"kernel": "6.1.0"}})
    assert ours != theirs


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "no token"),
        ("Basic abc", "not `Bearer TOKEN`"),
        ("Bearer", "not `Bearer TOKEN`"),
        ("Bearer fg_operator_wrong", "unknown token"),
    ],
)
async def test_a_request_without_a_good_token_gets_401_and_is_told_why(
    server: RunningServer, header: str | None, said: str
) -> None:
    headers = {"Authorization": header} if header else {}
    for path, method in (("/graphql", "POST"), ("/metrics", "GET")):
        answer = await server.operator.http.request(method, path, json={"query": "{ __typename }"}, headers=headers)
        assert answer.status_code == 401
        assert said in answer.text
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_a_revoked_token_is_refused(server: RunningServer) -> None:
    async with server.services.database.transaction() as tx:
        token = await issue_token(tx, server.operator.tenant_id, Role.OPERATOR, "to be revoked")
    principal = await authenticate(server.services.database, f"Bearer {token}", server.services.now())
    assert principal.token_id != TokenId("")
    async with server.services.database.transaction() as tx:
        await tx.execute("update api_tokens set revoked_at = now() where id = $1", principal.token_id)
    answer = await server.operator.http.post(
        "/graphql", json={"query": "{ __typename }"}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 401
    assert "revoked" in answer.text


async def test_health_is_open(server: RunningServer) -> None:
    assert (await server.operator.http.get("/healthz")).text == "ok\n"
    assert (await server.operator.http.get("/readyz")).json() == {"ready": True}


async def test_metrics_count_for_who_may_read(server: RunningServer) -> None:
    answer = await server.operator.http.get("/metrics", headers={"Authorization": f"Bearer {server.operator.token}"})
    assert "fleetgraph_feed_subscribers 0.0" in answer.text
