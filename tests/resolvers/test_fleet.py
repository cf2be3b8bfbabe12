"""Sites and pools, and assigning nodes to them."""

from typing import Any

import pytest

from tests.support.server import RunningServer, hello

SITE = "mutation ($i: SiteInput!) { createSite(input: $i) { id name kind iamRegion } }"
POOL = "mutation ($i: PoolInput!) { createPool(input: $i) { id name class sharing site { id } } }"
ASSIGN = "mutation ($n: ID!, $p: ID) { assignPool(id: $n, poolId: $p) { pool { id } site { id } } }"


async def test_a_node_is_put_into_a_pool_and_its_site_and_out_of_both(server: RunningServer) -> None:
    site = (await server.operator.data(SITE, i={"name": "north", "iamRegion": "eu-north"}))["createSite"]
    assert site == {"id": site["id"], "name": "north", "kind": "SHARED", "iamRegion": "eu-north"}
    given = {"name": "h100", "siteId": site["id"], "class": "METAL_DEDICATED", "sharing": "MIG"}
    pool = (await server.operator.data(POOL, i=given))["createPool"]
    assert pool == {**pool, "class": "METAL_DEDICATED", "sharing": "MIG", "site": {"id": site["id"]}}
    node_id = await hello(server.agent, "n1")
    assigned = (await server.operator.data(ASSIGN, n=node_id, p=pool["id"]))["assignPool"]
    assert assigned == {"pool": {"id": pool["id"]}, "site": {"id": site["id"]}}
    assert (await server.operator.data(ASSIGN, n=node_id))["assignPool"] == {"pool": None, "site": None}


async def _code(answer: dict[str, Any]) -> str:
    return str(answer["errors"][0]["extensions"]["code"])


async def test_a_name_is_taken_once_and_says_something(server: RunningServer) -> None:
    given = {"name": "north", "iamRegion": "eu"}
    await server.operator.data(SITE, i=given)
    assert await _code(await server.operator.send(SITE, i=given)) == "CONFLICT"
    assert await _code(await server.operator.send(SITE, i={**given, "name": " "})) == "INVALID_INPUT"
    assert "errors" not in await server.stranger.send(SITE, i=given)


async def test_what_is_not_ours_is_not_found(server: RunningServer) -> None:
    theirs = (await server.stranger.data(SITE, i={"name": "x", "iamRegion": "eu"}))["createSite"]["id"]
    their_pool = (await server.stranger.data(POOL, i={"name": "x", "siteId": theirs}))["createPool"]["id"]
    node_id = await hello(server.agent, "n1")
    assert await _code(await server.operator.send(POOL, i={"name": "p", "siteId": theirs})) == "NOT_FOUND"
    assert await _code(await server.operator.send(ASSIGN, n=node_id, p=their_pool)) == "NOT_FOUND"
    assert await _code(await server.stranger.send(ASSIGN, n=node_id, p=their_pool)) == "NOT_FOUND"


@pytest.mark.parametrize(
    ("query", "variables"), [(SITE, {"i": {"name": "x", "iamRegion": "eu"}}), (ASSIGN, {"n": "x"})]
)
async def test_an_agent_may_not(server: RunningServer, query: str, variables: dict[str, Any]) -> None:
    assert await _code(await server.agent.send(query, **variables)) == "FORBIDDEN"


async def test_each_mutation_of_an_operation_shows_what_it_wrote(server: RunningServer) -> None:
    site = (await server.operator.data(SITE, i={"name": "north", "iamRegion": "eu"}))["createSite"]["id"]
    given = [{"name": name, "siteId": site} for name in ("p1", "p2")]
    pools = [(await server.operator.data(POOL, i=each))["createPool"]["id"] for each in given]
    node_id = await hello(server.agent, "n1")
    query = """
    mutation ($n: ID!, $a: ID!, $b: ID!) {
      first: assignPool(id: $n, poolId: $a) { pool { name } }
      second: assignPool(id: $n, poolId: $b) { pool { name } }
    }
    """
    said = await server.operator.data(query, n=node_id, a=pools[0], b=pools[1])
    assert said == {"first": {"pool": {"name": "p1"}}, "second": {"pool": {"name": "p2"}}}


UPDATE = """
mutation ($id: ID!, $input: PoolPatch!) {
  updatePool(id: $id, input: $input) { id name gpuModel sharing agent policy }
}
"""


async def test_a_pool_is_changed_where_it_is_told_to(server: RunningServer) -> None:
    ids = [await _pool(server, name, {"expect": {"gpuCount": 8}}) for name in ("a", "b")]
    same = (await server.operator.data(UPDATE, id=ids[0], input={}))["updatePool"]
    assert same["policy"] == {"expect": {"gpuCount": 8}}
    changed = {"name": "c", "gpuModel": "H100", "sharing": "TIMESLICE", "policy": {"sharing": {"replicas": 8}}}
    assert (await server.operator.data(UPDATE, id=ids[0], input=changed))["updatePool"] == {
        **same,
        **changed,
    }
    assert (await server.operator.data(UPDATE, id=ids[0], input={"gpuModel": ""}))["updatePool"]["gpuModel"] is None
    for given, code in (
        ({"id": ids[0], "input": {"name": "b"}}, "CONFLICT"),
        ({"id": ids[0], "input": {"name": " "}}, "INVALID_INPUT"),
        ({"id": ids[0], "input": {"policy": {"sharing": {"replicas": 99}}}}, "INVALID_INPUT"),
        ({"id": ids[0], "input": {"policy": ["x"]}}, "INVALID_INPUT"),
        ({"id": "pool_x\0", "input": {}}, "NOT_FOUND"),
    ):
        (error,) = (await server.operator.send(UPDATE, **given))["errors"]
        assert error["extensions"]["code"] == code, given
    (error,) = (await server.stranger.send(UPDATE, id=ids[0], input={"name": "theirs"}))["errors"]
    assert error["extensions"]["code"] == "NOT_FOUND"
    (error,) = (await server.agent.send(UPDATE, id=ids[0], input={"name": "agents"}))["errors"]
    assert error["extensions"]["code"] == "FORBIDDEN"


async def _pool(server: RunningServer, name: str, policy: dict[str, object]) -> str:
    site = await server.operator.data(
        "mutation ($input: SiteInput!) { createSite(input: $input) { id } }",
        input={"name": f"site of {name}", "iamRegion": "eu"},
    )
    made = await server.operator.data(
        "mutation ($input: PoolInput!) { createPool(input: $input) { id } }",
        input={"name": name, "siteId": site["createSite"]["id"], "policy": policy},
    )
    return str(made["createPool"]["id"])
