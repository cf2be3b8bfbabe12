"""Status reports: what daemons say becomes the node's conditions, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from db.database import Database
from domain.daemon_conditions import DAEMON_TYPES
from tests.support.rows import Rows, written_rows
from tests.support.server import RECORD, RunningServer, hash_of, hello, running_server, section
from web.app import utc_now

REPORT: Final = """
mutation ($entries: [StatusInput!]!) {
  reportStatus(entries: $entries) { nodeId ignoredConditions error { code message } }
}
"""
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) {
    noScheduleReasons clockSkewSeconds conditions { type status reason message since noSchedule }
} }
"""
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
EXPOSED: Final = {"type": "ForeignGpuExposure", "reason": "DevicePlugin", "message": "nvidia-device-plugin runs"}


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers do not run: what is written, the reports write."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _report(server: RunningServer, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    return list((await server.agent.data(REPORT, entries=list(entries)))["reportStatus"])


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    node = dict((await server.operator.data(NODE, id=node_id))["computeNode"])
    return {**node, "conditions": {each.pop("type"): each for each in node["conditions"]}}


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        found = await written_rows(session)
    del found["node_liveness"]
    return found


async def _told(database: Database) -> list[tuple[str, str]]:
    async with database.session() as session:
        rows = await session.fetch("select payload from outbox where type = 'node.condition.changed' order by sequence")
    return [(row.payload["condition"], row.payload["status"]) for row in rows]


async def test_conditions_follow_the_last_report_and_are_written_on_change_only(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    async with database.transaction() as tx:
        await tx.execute("update nodes set no_schedule_reasons = '{Xid79,by hand}'")
    entry = {"nodeId": node_id, "conditions": [EXPOSED, {"type": "RebootRequired"}]}
    assert await _report(server, entry) == [{"nodeId": node_id, "ignoredConditions": [], "error": None}]
    node = await _node(server, node_id)
    assert node["noScheduleReasons"] == ["Xid79", "by hand", "ForeignGpuExposure"]
    exposed = node["conditions"]["ForeignGpuExposure"]
    assert (exposed["status"], exposed["reason"], exposed["noSchedule"]) == ("TRUE", "DevicePlugin", True)
    assert node["conditions"]["RebootRequired"]["noSchedule"] is False
    before = await _rows(database)
    await _report(server, entry)
    await _report(server, {"nodeId": node_id})
    assert await _rows(database) == before, "the same again, and a report without a word of conditions, write nothing"
    await _report(server, {"nodeId": node_id, "conditions": [{**EXPOSED, "status": "UNKNOWN"}]})
    node = await _node(server, node_id)
    assert node["conditions"]["ForeignGpuExposure"]["status"] == "UNKNOWN"
    assert node["noScheduleReasons"] == ["Xid79", "by hand", "ForeignGpuExposure"], "absence is not recovery"
    await _report(server, {"nodeId": node_id, "conditions": []})
    node = await _node(server, node_id)
    assert {each["status"] for each in node["conditions"].values()} == {"FALSE"}
    assert node["noScheduleReasons"] == ["Xid79", "by hand"]
    assert await _told(database) == [
        ("ForeignGpuExposure", "true"),
        ("RebootRequired", "true"),
        ("ForeignGpuExposure", "unknown"),
        ("RebootRequired", "false"),
        ("ForeignGpuExposure", "false"),
    ]


async def test_each_type_keeps_work_away_or_does_not_as_the_table_says(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _report(server, {"nodeId": node_id, "conditions": [{"type": kind} for kind in DAEMON_TYPES]})
    node = await _node(server, node_id)
    assert node["conditions"].keys() == {*DAEMON_TYPES}
    expected = {
        "ForeignGpuExposure",
        "PodResourcesUnavailable",
        "KubernetesReleaseStuck",
        "KubernetesReleasesUnreadable",
    }
    assert {*node["noScheduleReasons"]} == expected
    assert {kind for kind, each in node["conditions"].items() if each["noSchedule"]} == expected


async def test_what_other_sources_decide_is_named_and_left_alone(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    before = await _rows(database)
    said = [{"type": "NodeUnreachable"}, {"type": "AcceptanceFailed", "status": "FALSE"}, {"type": "FromTheFuture"}]
    (slot,) = await _report(server, {"nodeId": node_id, "conditions": said})
    assert slot["ignoredConditions"] == ["AcceptanceFailed", "FromTheFuture", "NodeUnreachable"]
    assert await _rows(database) == before


async def test_a_tenants_machine_is_recorded_and_gives_no_reason(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    entry = {"nodeId": node_id, "conditions": [EXPOSED]}
    await server.operator.data(TRUST, id=node_id, trust="TENANT_CONTROLLED")
    await _report(server, entry)
    node = await _node(server, node_id)
    assert (node["conditions"]["ForeignGpuExposure"]["status"], node["noScheduleReasons"]) == ("TRUE", [])
    await server.operator.data(TRUST, id=node_id, trust="PLATFORM")
    await _report(server, entry)
    after = await _node(server, node_id)
    assert after["noScheduleReasons"] == ["ForeignGpuExposure"]
    assert after["conditions"]["ForeignGpuExposure"]["since"] == node["conditions"]["ForeignGpuExposure"]["since"]


async def test_a_bad_entry_fails_alone(server: RunningServer) -> None:
    node_id, other = [await hello(server.agent, name) for name in ("n1", "n2")]
    theirs = await hello(server.stranger, "n1")
    slots = await _report(
        server,
        {"nodeId": node_id, "conditions": [EXPOSED]},
        {"nodeId": node_id, "conditions": []},
        {"nodeId": "nonsense", "conditions": []},
        {"nodeId": theirs, "conditions": [EXPOSED]},
        {"nodeId": other, "conditions": [{"type": "MPSDown"}, {"type": "MPSDown"}]},
        {"nodeId": "node_00000000000000000000000000", "conditions": [{"type": "MPSDown", "message": "x" * 1001}]},
    )
    assert [slot["error"] and slot["error"]["code"] for slot in slots] == [
        None,
        "INVALID_INPUT",
        "NOT_FOUND",
        "NOT_FOUND",
        "INVALID_INPUT",
        "INVALID_INPUT",
    ]
    assert (await _node(server, node_id))["noScheduleReasons"] == ["ForeignGpuExposure"]
    for client, untouched in ((server.operator, other), (server.stranger, theirs)):
        assert (await client.data(NODE, id=untouched))["computeNode"]["conditions"] == []


async def test_a_report_is_a_sign_of_life_and_tells_the_time(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    async with database.transaction() as tx:
        await tx.execute("update node_liveness set last_seen_at = now() - interval '1 day', away = 'lost'")
    await _report(server, {"nodeId": node_id, "sentAt": utc_now().isoformat()})
    assert database.heard_again.is_set()
    node = await server.operator.data("query ($id: ID!) { computeNode(id: $id) { connectivity } }", id=node_id)
    assert node["computeNode"]["connectivity"] == "CONNECTED"
    assert abs((await _node(server, node_id))["clockSkewSeconds"]) < 2


async def test_many_single_reports_at_once_share_statements_and_keep_to_their_tenants(
    database: Database, server: RunningServer
) -> None:
    clients = [server.agent, server.stranger]
    nodes = [[await hello(client, f"n{number}") for number in range(12)] for client in clients]
    given = section("os", {"kernel": "6"})

    async def beat(which: int, node_id: str) -> Any:  # noqa: ANN401 - a slot
        entries = [{"nodeId": node_id, "hashes": [hash_of(given)]}]
        return (await clients[which].data(RECORD, entries=entries))["recordInventoryHashes"][0]

    before = {row.at for row in await _seen(database)}
    own = [beat(which, node_id) for which in (0, 1) for node_id in nodes[which]]
    slots = await asyncio.gather(*own, beat(0, nodes[1][0]), beat(1, nodes[0][0]))
    assert [slot["error"] and slot["error"]["code"] for slot in slots] == [None] * 24 + ["NOT_FOUND"] * 2
    assert all(slot["requestSections"] == ["os"] for slot in slots[:24])
    seen = await _seen(database)
    assert not before & {row.at for row in seen}
    assert len({row.at for row in seen}) < 24, "those that share a statement share its time"


async def _seen(database: Database) -> list[Any]:
    async with database.session() as session:
        return list(await session.fetch("select node_id, last_seen_at as at from node_liveness"))
