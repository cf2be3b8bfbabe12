"""GpuCountMismatch from the report to the node, through changes of its pool."""

from typing import Any

import pytest

from db.database import Database
from reconcilers.inventory import apply_pending
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now

SITE = 'mutation { createSite(input: {name: "here", iamRegion: "eu-1"}) { id } }'
POOL = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
POLICY = "mutation ($id: ID!, $policy: JSON!) { updatePool(id: $id, input: {policy: $policy}) { id } }"
ASSIGN = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
NODE = """
query ($id: ID!) { computeNode(id: $id) {
    noScheduleReasons unschedulableReasons conditions { type status reason message since noSchedule }
} }
"""


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose inventory reconciler is run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


def _gpus(count: int, enumeration: str = "complete") -> dict[str, Any]:
    gpus = [{"uuid": f"GPU-{number}", "pciBusId": f"00000000:1{number}:00.0"} for number in range(count)]
    return {"gpus": {"enumeration": enumeration, "gpus": gpus}}


async def _mismatch(server: RunningServer, node_id: str) -> dict[str, Any] | None:
    node = (await server.operator.data(NODE, id=node_id))["computeNode"]
    found: dict[str, Any] | None = next(
        (each for each in node["conditions"] if each["type"] == "GpuCountMismatch"), None
    )
    holds = found is not None and found["status"] == "TRUE"
    for reasons in ("noScheduleReasons", "unschedulableReasons"):
        assert ("GpuCountMismatch" in node[reasons]) is holds
    return found


async def test_the_mismatch_follows_reports_the_policy_and_the_assignment(
    database: Database, server: RunningServer
) -> None:
    operator = server.operator
    site = (await operator.data(SITE))["createSite"]["id"]
    made = {"name": "p", "siteId": site, "class": "VPS_HOST", "policy": {"expect": {"gpuCount": 3}}}
    pool = (await operator.data(POOL, input=made))["createPool"]["id"]
    node_id = await hello(server.agent, "n1")

    async def applied(documents: dict[str, Any] | None = None) -> dict[str, Any] | None:
        if documents is not None:
            await ingest(server.agent, node_id, documents)
        assert (await apply_pending(database, utc_now)).done == 1
        return await _mismatch(server, node_id)

    assert await applied(_gpus(2)) is None
    await operator.data(ASSIGN, id=node_id, pool=pool)
    few = await applied()
    assert few is not None
    assert (few["status"], few["reason"], few["noSchedule"]) == ("TRUE", "FewerThanExpected", True)
    assert few["message"] == "GPUs: 2 found, 3 expected by its pool's policy"
    assert await applied(_gpus(1, "incomplete")) == few
    await operator.data(POLICY, id=pool, policy={"expect": {"gpuCount": 2}})
    assert await applied() == few, "of an enumeration that was cut short nothing is said"
    right = await applied(_gpus(2))
    assert right is not None
    assert right["status"] == "FALSE"
    await operator.data(POLICY, id=pool, policy={"expect": {"gpuCount": 1}})
    many = await applied()
    assert many is not None
    assert many["reason"] == "MoreThanExpected"
    assert many["since"] > right["since"]
    await operator.data(ASSIGN, id=node_id, pool=None)
    out = await applied()
    assert out is not None
    assert out["status"] == "FALSE"
    assert (await apply_pending(database, utc_now)).done == 0


async def test_without_a_policy_the_number_at_acceptance_counts(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    async with database.transaction() as tx:
        await tx.execute("update nodes set accepted_gpus = 2 where id = $1", node_id)
    await ingest(server.agent, node_id, _gpus(1))
    await apply_pending(database, utc_now)
    found = await _mismatch(server, node_id)
    assert found is not None
    assert found["message"] == "GPUs: 1 found, 2 expected by its last acceptance"
    async with database.transaction() as tx:
        told = await tx.fetch("select payload from outbox where payload ->> 'condition' = 'GpuCountMismatch'")
    assert [(each.payload["status"], each.payload["noSchedule"]) for each in told] == [("true", True)]


async def test_a_display_adapter_of_a_foreign_agent_is_no_gpu(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    async with database.transaction() as tx:
        await tx.execute("update nodes set accepted_gpus = 1 where id = $1", node_id)
    await ingest(server.agent, node_id, _gpus(1))
    await apply_pending(database, utc_now)
    both = _gpus(2)
    both["gpus"]["gpus"][1]["name"] = "NVIDIA DGX Display"
    await ingest(server.agent, node_id, both)
    await apply_pending(database, utc_now)
    assert await _mismatch(server, node_id) is None
    query = """query ($id: ID!) { computeNode(id: $id) {
        devices { totalCount } labels { key value } latestSnapshot { sections { gpus { gpus { name } } } }
    } inventoryDiff(nodeId: $id) { changes { type } } }"""
    found = await server.operator.data(query, id=node_id)
    node = found["computeNode"]
    assert node["devices"]["totalCount"] == 1
    assert {"key": "gpu.count", "value": "1"} in node["labels"]
    assert node["latestSnapshot"]["sections"]["gpus"]["gpus"][1]["name"] == "NVIDIA DGX Display"
    assert found["inventoryDiff"]["changes"] == []
