"""The hygiene sweep, from what an operator wants and an agent says to what keeps work off the node."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from db.database import Database
from reconcilers.hygiene import hygiene
from reconcilers.inventory import apply_pending
from tests.support.rows import written_rows
from tests.support.server import HELLO, RunningServer, hello, ingest, running_server
from web.app import utc_now

SPEC: Final = """
mutation ($id: ID!, $units: [UnitInput!]!) {
  setNodeSpec(id: $id, units: $units) { generation observedGeneration units { kind version } }
}
"""
REPORT: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { code } } }"
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) {
    generation observedGeneration noScheduleReasons conditions { type status reason message }
    certificate { serial notBefore notAfter }
} }
"""
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
DRIVER: Final = {"kind": "nvidia-driver", "version": "580"}


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _sweep(database: Database, agent_version_min: str | None = None) -> int:
    """Sweep once, and see that a second time writes nothing."""
    reconciler = hygiene(database, agent_version_min, utc_now)
    done = (await reconciler.activate()).done
    async with database.session() as session:
        before = await written_rows(session)
        assert (await reconciler.activate()).done == 0
        assert await written_rows(session) == before
    return done


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    node = dict((await server.operator.data(NODE, id=node_id))["computeNode"])
    return {**node, "conditions": {each.pop("type"): each for each in node["conditions"]}}


async def _drive(database: Database, server: RunningServer, node_id: str, driver: str) -> None:
    gpus = {"enumeration": "complete", "driverVersion": driver, "gpus": [{"uuid": "GPU-1"}]}
    await ingest(server.agent, node_id, {"gpus": gpus})
    assert (await apply_pending(database, utc_now)).done == 1


async def _observe(server: RunningServer, node_id: str, generation: int) -> None:
    entry = {"nodeId": node_id, "observedGeneration": generation}
    assert (await server.agent.data(REPORT, entries=[entry]))["reportStatus"] == [{"error": None}]


async def test_a_converged_node_with_another_driver_takes_no_work_until_it_has_the_right_one(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await _drive(database, server, node_id, "550.90.07")
    spec = (await server.operator.data(SPEC, id=node_id, units=[DRIVER]))["setNodeSpec"]
    assert spec == {"generation": 2, "observedGeneration": 0, "units": [DRIVER]}
    assert (await server.operator.data(SPEC, id=node_id, units=[DRIVER]))["setNodeSpec"]["generation"] == 2
    assert await _sweep(database) == 0, "it has not converged"
    await _observe(server, node_id, 7)
    assert (await _node(server, node_id))["observedGeneration"] == 0, "what was never asked for is not observed"
    await _observe(server, node_id, 2)
    assert await _sweep(database) == 1
    node = await _node(server, node_id)
    assert (node["observedGeneration"], node["noScheduleReasons"]) == (2, ["DriverMismatch"])
    assert node["conditions"]["DriverMismatch"] == {
        "status": "TRUE",
        "reason": "OtherBranch",
        "message": "driver 550.90.07; its nvidia-driver unit wants 580",
    }
    await _drive(database, server, node_id, "580.105.08")
    assert await _sweep(database) == 1
    node = await _node(server, node_id)
    assert (node["conditions"]["DriverMismatch"]["status"], node["noScheduleReasons"]) == ("FALSE", [])
    async with database.session() as session:
        rows = await session.fetch("select payload from outbox where payload ->> 'condition' = 'DriverMismatch'")
    assert [(row.payload["status"], row.payload["noSchedule"]) for row in rows] == [("true", True), ("false", True)]


async def test_an_old_agent_keeps_work_off_its_node_until_a_new_one_says_hello(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "old", agentVersion="1.3", protocol="1")
    silent = await hello(server.agent, "silent")
    retired = await hello(server.agent, "retired", agentVersion="1.3")
    async with database.transaction() as tx:
        await tx.execute("update nodes set provision_state = 'retired' where id = $1", retired)
    assert await _sweep(database) == 0
    assert await _sweep(database, "1.4") == 1
    assert (await _node(server, node_id))["noScheduleReasons"] == ["DaemonOutdated"]
    assert (await _node(server, silent))["conditions"] == (await _node(server, retired))["conditions"] == {}
    await hello(server.agent, "old", agentVersion="1.4", protocol="0.3")
    assert await _sweep(database, "1.4") == 1
    assert (await _node(server, node_id))["conditions"]["DaemonOutdated"]["reason"] == "OlderProtocol"
    await hello(server.agent, "old", agentVersion="1.4", protocol="1")
    assert await _sweep(database, "1.4") == 1
    assert (await _node(server, node_id))["noScheduleReasons"] == []


async def test_a_certificate_that_is_about_to_expire_keeps_work_off_its_node_until_a_newer_one_is_told(
    database: Database, server: RunningServer
) -> None:
    today = utc_now().replace(microsecond=0)

    def certificate(serial: str, *days: int) -> dict[str, str]:
        begins, ends = (today + timedelta(days=each) for each in days)
        return {"serial": serial, "notBefore": begins.isoformat(), "notAfter": ends.isoformat()}

    async def tell(told: dict[str, str]) -> tuple[str | None, list[str], str]:
        """Return the condition's reason, what keeps work away and the certificate that is known after a sweep."""
        await hello(server.agent, "n1", certificate=told)
        await _sweep(database)
        node = await _node(server, node_id)
        return node["conditions"]["CertExpiring"]["reason"], node["noScheduleReasons"], node["certificate"]["serial"]

    node_id = await hello(server.agent, "n1")
    assert await _sweep(database) == 0
    assert (await _node(server, node_id))["certificate"] is None
    expired, expiring, good = certificate("1", -91, -1), certificate("2", -85, 5), certificate("3", -1, 89)
    assert await tell(expired) == ("Expired", ["CertExpiring"], "1")
    assert await tell(expiring) == ("Expiring", ["CertExpiring"], "2")
    assert await tell(expired) == ("Expiring", ["CertExpiring"], "2"), "who still has the old one tells nothing new"
    assert await tell(good) == (None, [], "3")
    refused = await server.agent.send(HELLO, input={"identityKey": "n1", "certificate": {**good, "serial": "x"}})
    (error,) = refused["errors"]
    assert (error["extensions"]["code"], error["message"].partition(":")[0]) == ("INVALID_INPUT", "certificate.serial")


async def test_a_tenants_machine_keeps_the_platforms_last_view(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", agentVersion="1.3")
    await server.operator.data(SPEC, id=node_id, units=[])
    await server.operator.data(SPEC, id=node_id, units=[DRIVER])
    await server.operator.data(TRUST, id=node_id, trust="TENANT_CONTROLLED")
    await _observe(server, node_id, 1)
    assert await _sweep(database, "1.4") == 0
    assert (await _node(server, node_id))["observedGeneration"] == 0
    await server.operator.data(TRUST, id=node_id, trust="PLATFORM")
    assert await _sweep(database, "1.4") == 1


async def test_units_are_refused_naming_the_place(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    (error,) = (await server.operator.send(SPEC, id=node_id, units=[DRIVER, DRIVER]))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert "units.1.kind" in error["message"]
    (error,) = (await server.stranger.send(SPEC, id=node_id, units=[DRIVER]))["errors"]
    assert error["extensions"]["code"] == "NOT_FOUND"
    (error,) = (await server.agent.send(SPEC, id=node_id, units=[DRIVER]))["errors"]
    assert error["extensions"]["code"] == "FORBIDDEN"
