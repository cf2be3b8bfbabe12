"""Whether work may be placed on a node, and why not."""

from typing import Any

import pytest

from db.identifiers import new_id
from tests.support.server import RunningServer, hello

READY = {"provision_state": "adopted", "role": "host", "observed_generation": 1}
QUERY = "query ($id: ID!) { computeNode(id: $id) { schedulable unschedulableReasons } }"


async def _set(server: RunningServer, node_id: str, **values: Any) -> None:  # noqa: ANN401 - any column
    async with server.services.database.transaction() as tx:
        for column, value in values.items():
            await tx.execute(f"update nodes set {column} = $1 where id = $2", value, node_id)  # noqa: S608 - ours


async def _reasons(server: RunningServer, node_id: str) -> list[str]:
    found = (await server.operator.data(QUERY, id=node_id))["computeNode"]
    assert found["schedulable"] is not bool(found["unschedulableReasons"])
    return list(found["unschedulableReasons"])


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        ({}, []),
        ({"provision_state": "deployed"}, []),
        ({"provision_state": "ready"}, ["provisionState=ready"]),
        ({"role": "unassigned"}, ["role=unassigned"]),
        ({"maintenance": True, "cordoned": True, "draining": True}, ["maintenance", "cordoned", "draining"]),
        ({"observed_generation": 0}, ["observedGeneration=0"]),
        ({"trust": "tenant-controlled"}, ["trust=tenant-controlled"]),
        ({"trust": "tenant-owned"}, ["trust=tenant-owned"]),
        ({"no_schedule_reasons": ["Xid79", "foreign"]}, ["Xid79", "foreign"]),
        ({"cordoned": True, "no_schedule_reasons": ["Xid79"]}, ["cordoned", "Xid79"]),
    ],
)
async def test_a_node_says_why_nothing_is_placed_on_it(
    server: RunningServer, values: dict[str, Any], reasons: list[str]
) -> None:
    node_id = await hello(server.agent, "n1")
    await _set(server, node_id, **READY)
    await _set(server, node_id, **values)
    assert await _reasons(server, node_id) == reasons


async def test_a_node_that_is_not_heard_of_takes_no_work(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _set(server, node_id, **READY)
    async with server.services.database.transaction() as tx:
        await tx.execute("update node_liveness set last_seen_at = now() - interval '1 hour'")
    assert await _reasons(server, node_id) == ["connectivity=disconnected"]


async def test_a_tenants_own_machine_takes_work_in_one_of_its_pools(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    site, pool, tenant = new_id("site"), new_id("pool"), server.operator.tenant_id
    async with server.services.database.transaction() as tx:
        await tx.execute("insert into sites (id, tenant_id, name, iam_region) values ($1, $2, 's', 'eu')", site, tenant)
        await tx.execute(
            "insert into pools (id, tenant_id, site_id, name) values ($1, $2, $3, 'p')", pool, tenant, site
        )
    await _set(server, node_id, **READY, trust="tenant-owned", pool_id=pool)
    assert await _reasons(server, node_id) == []
