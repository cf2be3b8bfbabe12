"""Pressure in status reports: what hosts measure becomes conditions, and an effect by their pool."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from db.database import Database
from tests.support.rows import Rows, written_rows
from tests.support.server import RunningServer, hello, running_server

REPORT: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { code message } } }"
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) { noScheduleReasons conditions { type status reason message noSchedule } } }
"""
SITE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "r"}) { id } }'
POOL: Final = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
ASSIGN: Final = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers do not run: what is written, the reports write."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _press(server: RunningServer, node_id: str, **entry: Any) -> dict[str, Any] | None:  # noqa: ANN401 - input
    (slot,) = (await server.agent.data(REPORT, entries=[{"nodeId": node_id, **entry}]))["reportStatus"]
    return None if slot["error"] is None else dict(slot["error"])


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    node = dict((await server.operator.data(NODE, id=node_id))["computeNode"])
    return {**node, "conditions": {each.pop("type"): each for each in node["conditions"]}}


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        found = await written_rows(session)
    del found["node_liveness"]
    return found


async def _in_pool(server: RunningServer, node_id: str, pool_class: str) -> None:
    site_id = (await server.operator.data(SITE))["createSite"]["id"]
    made = await server.operator.data(POOL, input={"name": "p", "siteId": site_id, "class": pool_class})
    await server.operator.data(ASSIGN, id=node_id, pool=made["createPool"]["id"])


async def test_pressure_is_written_on_change_only_with_its_pools_effect(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await _in_pool(server, node_id, "VPS_HOST")
    assert await _press(server, node_id, pressure={"cpu": 79.9, "memory": 19, "io": 0, "steal": None}) is None
    assert (await _node(server, node_id))["conditions"] == {}
    await _press(server, node_id, pressure={"cpu": 85, "memory": 0, "io": 0})
    assert await _node(server, node_id) == {
        "noScheduleReasons": ["CpuPressure"],
        "conditions": {
            "CpuPressure": {
                "status": "TRUE",
                "reason": "CpuStall",
                "message": "tasks waited for a CPU for 80 % of the time or more; it ends below 60 %",
                "noSchedule": True,
            }
        },
    }
    before = await _rows(database)
    entries: list[dict[str, Any]] = [
        {"pressure": {"cpu": 97}},
        {"pressure": {"cpu": 60, "steal": 15}},
        {"pressure": {}},
        {},
    ]
    for entry in entries:
        await _press(server, node_id, **entry)
    assert await _rows(database) == before, "another figure of the same pressure, and silence, write nothing"
    await server.operator.data(ASSIGN, id=node_id, pool=None)
    await _press(server, node_id, pressure={"cpu": 85})
    moved = await _node(server, node_id)
    assert (moved["noScheduleReasons"], moved["conditions"]["CpuPressure"]["status"]) == ([], "TRUE")
    await _press(server, node_id, pressure={"cpu": 59, "steal": 0}, conditions=[{"type": "RebootRequired"}])
    node = await _node(server, node_id)
    assert {kind: each["status"] for kind, each in node["conditions"].items()} == {
        "CpuPressure": "FALSE",
        "RebootRequired": "TRUE",
    }
    async with database.session() as session:
        rows = await session.fetch("select payload from outbox where payload ->> 'condition' = 'CpuPressure'")
    assert [(row.payload["status"], row.payload["noSchedule"]) for row in rows] == [
        ("true", True),
        ("true", False),
        ("false", False),
    ]


async def test_a_tenants_machine_is_not_asked_for_its_pressure(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await server.operator.data(TRUST, id=node_id, trust="TENANT_CONTROLLED")
    before = await _rows(database)
    assert await _press(server, node_id, pressure={"cpu": 100, "memory": 100, "io": 100, "steal": 100}) is None
    assert await _rows(database) == before


@pytest.mark.parametrize(("name", "percent"), [("cpu", -0.1), ("steal", 100.1), ("io", 1e300)])
async def test_what_is_no_percentage_is_refused_naming_the_place(
    database: Database, server: RunningServer, name: str, percent: float
) -> None:
    node_id = await hello(server.agent, "n1")
    before = await _rows(database)
    error = await _press(server, node_id, pressure={"memory": 90, name: percent}, conditions=[{"type": "MPSDown"}])
    assert error is not None
    assert error["code"] == "INVALID_INPUT"
    assert f"pressure.{name}" in error["message"]
    assert await _rows(database) == before
