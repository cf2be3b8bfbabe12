"""Acceptance from an operator's word to the node in placement, on real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from db.database import Database
from reconcilers.acceptance import acceptance
from reconcilers.commands import commands
from reconcilers.inventory import apply_pending
from tests.support.rows import Rows, written_rows
from tests.support.server import Client, RunningServer, hello, ingest, running_server
from tests.support.silence import silence
from web.app import utc_now

SITE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "r"}) { id } }'
POOL: Final = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
PATCH: Final = "mutation ($id: ID!, $input: PoolPatch!) { updatePool(id: $id, input: $input) { id } }"
ASSIGN: Final = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
ADOPT: Final = "mutation ($id: ID!) { adoptNode(id: $id) { provisionState acceptance { attempt state } } }"
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
CANCEL: Final = "mutation ($id: ID!) { cancelCommand(id: $id) { id } }"
ISSUE: Final = "mutation ($input: CommandInput!) { issueCommand(input: $input) { id } }"
START: Final = "mutation ($input: StartCommandInput!) { startCommand(input: $input) { id } }"
COMPLETE: Final = "mutation ($input: CommandResultInput!) { completeCommand(input: $input) { id } }"
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) {
    provisionState generation noScheduleReasons unschedulableReasons
    acceptance { attempt state reason startedAt finishedAt checks { kind commandId state reason } }
    conditions { type status reason message }
    commands { nodes { id kind payload state notAfter createdAt issuedBy } }
} }
"""
TOLD: Final = """
select type, payload from outbox where type like 'node.acceptance.%' or type = 'node.adopted' order by sequence
"""
NVML: Final = {"acceptance": ["diag.nvml"]}
BOTH: Final = {"acceptance": ["diag.nvml", "inventory.refresh"], "expect": {"gpuCount": 8}}
PASSED: Final = {"outcome": "SUCCEEDED", "result": {"passed": True, "failures": []}}
LANES: Final = {"check": "pcie.link", "reason": "8 of 16 lanes", "gpu": "GPU-0"}
NARROW: Final = {"outcome": "SUCCEEDED", "result": {"passed": False, "failures": [LANES]}}


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def look(database: Database) -> int:
    """Look once, and see that a second look writes nothing."""
    reconciler = acceptance(database, utc_now)
    done = (await reconciler.activate()).done
    before = await rows(database)
    assert (await reconciler.activate()).done == 0
    assert await rows(database) == before
    return done


async def rows(database: Database) -> Rows:
    async with database.session() as session:
        return await written_rows(session)


async def told(database: Database) -> list[tuple[str, dict[str, Any]]]:
    """Return what was told of acceptance since the node joined."""
    async with database.session() as session:
        found = [(row.type, row.payload) for row in await session.fetch(TOLD)]
    assert found[0] == ("node.adopted", {"attempt": None, "reason": "NoChecks"})
    return found[1:]


async def show(server: RunningServer, node_id: str) -> dict[str, Any]:
    node = dict((await server.operator.data(NODE, id=node_id))["computeNode"])
    failed = [each for each in node["conditions"] if each["type"] == "AcceptanceFailed"]
    return {**node, "failed": failed[0] if failed else None, "commands": node["commands"]["nodes"]}


async def adopt(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await server.operator.data(ADOPT, id=node_id))["adoptNode"])


async def pooled(
    database: Database, server: RunningServer, policy: dict[str, Any], gpus: int | None = 2, **more: str
) -> tuple[str, str]:
    """Put a node with so many GPUs into a pool; returns the two."""
    operator = server.operator
    site = (await operator.data(SITE))["createSite"]["id"]
    made = {"name": "p", "siteId": site, "policy": policy, **more}
    pool = (await operator.data(POOL, input=made))["createPool"]["id"]
    node_id = await hello(server.agent, "n1")
    await operator.data(ASSIGN, id=node_id, pool=pool)
    if gpus is not None:
        await bring(database, server, node_id, gpus)
    return node_id, pool


async def bring(database: Database, server: RunningServer, node_id: str, gpus: int) -> None:
    found = [{"uuid": f"GPU-{number}", "pciBusId": f"00000000:1{number}:00.0"} for number in range(gpus)]
    await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": found}})
    assert (await apply_pending(database, utc_now)).done == 1


async def end(agent: Client, node_id: str, command: dict[str, Any], said: dict[str, Any]) -> None:
    """Run a command as the node's agent does, and tell its result."""
    ref = {"nodeId": node_id, "commandId": command["id"]}
    if said["outcome"] == "SUCCEEDED":
        await agent.data(START, input={**ref, "runId": "run-1"})
    await agent.data(COMPLETE, input={**ref, **said})


async def test_a_node_is_out_of_placement_until_it_has_passed_its_pools_checks(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, BOTH)
    assert (await show(server, node_id))["acceptance"] is None
    assert await adopt(server, node_id) == {
        "provisionState": "ADOPTING",
        "acceptance": {"attempt": 1, "state": "WAITING"},
    }
    assert await adopt(server, node_id) == await adopt(server, node_id), "an attempt that is under way goes on"
    assert await look(database) == 1
    node = await show(server, node_id)
    refresh, nvml = node["commands"]
    assert (nvml["kind"], nvml["payload"], nvml["issuedBy"]) == ("diag.nvml", {"gpuCount": 8}, "acceptance")
    valid = datetime.fromisoformat(nvml["notAfter"]) - datetime.fromisoformat(nvml["createdAt"])
    assert abs(valid - timedelta(minutes=10)) < timedelta(minutes=1)
    assert (node["failed"]["status"], node["failed"]["reason"]) == ("UNKNOWN", "Running")
    assert "provisionState=adopting" in node["unschedulableReasons"]
    async with database.session() as session:
        keys = [row.idempotency_key for row in await session.fetch("select * from commands order by sequence")]
    assert keys == [f"acceptance:{node_id}:1:{kind}" for kind in ("diag.nvml", "inventory.refresh")]

    await end(server.agent, node_id, nvml, PASSED)
    assert await look(database) == 1
    node = await show(server, node_id)
    assert [each["state"] for each in node["acceptance"]["checks"]] == ["PASSED", "RUNNING"]
    assert node["provisionState"] == "ADOPTING"
    await end(server.agent, node_id, refresh, {"outcome": "SUCCEEDED"})
    assert await look(database) == 1
    node = await show(server, node_id)
    assert (node["provisionState"], node["noScheduleReasons"]) == ("ADOPTED", ["GpuCountMismatch"])
    assert (node["failed"]["status"], node["failed"]["reason"]) == ("FALSE", "Passed")
    assert (node["acceptance"]["state"], node["acceptance"]["reason"]) == ("PASSED", "Passed")
    started = {
        "attempt": 1,
        "checks": ["diag.nvml", "inventory.refresh"],
        "commandIds": [nvml["id"], refresh["id"]],
    }
    assert await told(database) == [
        ("node.acceptance.started", started),
        ("node.adopted", {"attempt": 1, "reason": "Passed"}),
    ]


async def test_a_failure_stays_until_an_operator_has_the_node_tried_anew(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, NVML)
    await adopt(server, node_id)
    await look(database)
    (first,) = (await show(server, node_id))["commands"]
    assert first["payload"] == {"gpuCount": 2}
    await end(server.agent, node_id, first, NARROW)
    assert await look(database) == 1
    assert await look(database) == 0, "it is not tried again by itself"
    node = await show(server, node_id)
    assert node["failed"] == {
        "type": "AcceptanceFailed",
        "status": "TRUE",
        "reason": "diag.nvml:pcie.link",
        "message": "attempt 1: pcie.link: 8 of 16 lanes",
    }
    assert (node["provisionState"], node["noScheduleReasons"]) == ("ADOPTING", ["AcceptanceFailed"])
    assert node["acceptance"]["checks"] == [
        {"kind": "diag.nvml", "commandId": first["id"], "state": "FAILED", "reason": "diag.nvml:pcie.link"}
    ]
    assert (await adopt(server, node_id))["acceptance"] == {"attempt": 2, "state": "WAITING"}
    await look(database)
    node = await show(server, node_id)
    assert (node["failed"]["status"], node["failed"]["reason"]) == ("UNKNOWN", "Running")
    await end(server.agent, node_id, node["commands"][0], PASSED)
    assert await look(database) == 1
    node = await show(server, node_id)
    assert (node["provisionState"], node["noScheduleReasons"]) == ("ADOPTED", [])
    assert [type_ for type_, _ in await told(database)] == [
        "node.acceptance.started",
        "node.acceptance.failed",
        "node.acceptance.started",
        "node.adopted",
    ]
    assert (await told(database))[1][1] == {
        "attempt": 1,
        "reason": "diag.nvml:pcie.link",
        "commandId": first["id"],
    }


async def test_an_agent_that_is_gone_lets_the_attempt_expire_and_a_cancelled_check_failed(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, NVML)
    await adopt(server, node_id)
    await look(database)
    await silence(database, 700, node_id)
    late = commands(database, lambda: datetime.now(UTC) + timedelta(minutes=11))
    assert (await late.activate()).done == 1
    assert database.acceptance_due.is_set()
    assert await look(database) == 1
    assert (await show(server, node_id))["failed"]["reason"] == "Expired"
    await adopt(server, node_id)
    assert await look(database) == 0, "it begins when the node is heard"
    await silence(database, 0, node_id)
    assert await look(database) == 1
    (newest, _) = (await show(server, node_id))["commands"]
    await server.operator.data(CANCEL, id=newest["id"])
    assert await look(database) == 1
    assert (await show(server, node_id))["failed"]["reason"] == "diag.nvml:failed"


async def test_an_agent_that_does_not_know_a_check_fails_it(database: Database, server: RunningServer) -> None:
    node_id, _ = await pooled(database, server, {"acceptance": ["diag.dcgm"]})
    await adopt(server, node_id)
    await look(database)
    (dcgm,) = (await show(server, node_id))["commands"]
    assert (dcgm["kind"], dcgm["payload"]) == ("diag.dcgm", {})
    await end(server.agent, node_id, dcgm, {"outcome": "FAILED", "reason": "unsupported"})
    assert await look(database) == 1
    assert (await show(server, node_id))["failed"]["reason"] == "UnsupportedCheck"


async def test_what_is_checked_is_fixed_as_the_attempt_starts(database: Database, server: RunningServer) -> None:
    node_id, pool = await pooled(database, server, NVML)
    await adopt(server, node_id)
    await look(database)
    await server.operator.data(PATCH, id=pool, input={"policy": BOTH})
    assert await look(database) == 0
    (only,) = (await show(server, node_id))["commands"]
    await server.operator.data(ASSIGN, id=node_id, pool=None)
    assert await look(database) == 0
    await end(server.agent, node_id, only, PASSED)
    assert await look(database) == 1
    assert (await show(server, node_id))["acceptance"]["reason"] == "Passed"


@pytest.mark.parametrize("policy", [{}, NVML])
async def test_without_checks_to_pass_a_node_is_adopted_at_once(
    database: Database, server: RunningServer, policy: dict[str, Any]
) -> None:
    node_id, _ = await pooled(database, server, policy, gpus=None, agent="NONE" if policy else "BCD")
    await adopt(server, node_id)
    assert await look(database) == 1
    node = await show(server, node_id)
    assert (node["provisionState"], node["generation"], node["commands"]) == ("ADOPTED", 1, [])
    assert (node["acceptance"]["state"], node["acceptance"]["reason"]) == ("PASSED", "NoChecks")
    assert await told(database) == [("node.adopted", {"attempt": 1, "reason": "NoChecks"})]


async def test_a_check_waits_for_an_inventory_and_a_node_is_held_to_the_gpus_it_was_accepted_with(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, NVML, gpus=None)
    await adopt(server, node_id)
    assert await look(database) == 0
    await bring(database, server, node_id, 3)
    assert await look(database) == 1
    (nvml,) = (await show(server, node_id))["commands"]
    assert nvml["payload"] == {"gpuCount": 3}
    database.inventory_pending.clear()
    await end(server.agent, node_id, nvml, PASSED)
    await look(database)
    assert database.inventory_pending.is_set()
    assert (await apply_pending(database, utc_now)).done == 1, "the number that it is held to has changed"
    await bring(database, server, node_id, 2)
    mismatch = [each for each in (await show(server, node_id))["conditions"] if each["type"] == "GpuCountMismatch"]
    assert [(each["status"], each["reason"]) for each in mismatch] == [("TRUE", "FewerThanExpected")]


async def test_late_results_of_an_earlier_attempt_say_nothing_of_a_newer_one(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, BOTH)
    await adopt(server, node_id)
    await look(database)
    refresh, nvml = (await show(server, node_id))["commands"]
    ref = {"nodeId": node_id, "commandId": nvml["id"]}
    await server.agent.data(START, input={**ref, "runId": "run-1"})
    # An operator's hand in the database, as no mutation ends an attempt: the node is tried anew while this one runs.
    async with database.transaction() as tx:
        await tx.execute("update nodes set provision_state = 'adopted'")
    assert (await adopt(server, node_id))["acceptance"]["attempt"] == 2
    await look(database)
    await server.agent.data(COMPLETE, input={**ref, **NARROW})
    await server.operator.data(CANCEL, id=refresh["id"])
    assert await look(database) == 0
    for each in (await show(server, node_id))["commands"][:2]:
        await end(server.agent, node_id, each, PASSED)
    await look(database)
    assert (await show(server, node_id))["acceptance"]["reason"] == "Passed"


async def test_reconcilers_and_operators_at_once_start_one_attempt(database: Database, server: RunningServer) -> None:
    node_id, _ = await pooled(database, server, BOTH)
    looks = [acceptance(database, utc_now).activate for _ in range(4)]
    await asyncio.gather(*(adopt(server, node_id) for _ in range(4)), *(each() for each in looks))
    await asyncio.gather(*(each() for each in looks))
    await look(database)
    node = await show(server, node_id)
    assert (node["acceptance"]["attempt"], len(node["commands"])) == (1, 2)
    for each in node["commands"]:
        await end(server.agent, node_id, each, PASSED)
    await asyncio.gather(*(each() for each in looks))
    await look(database)
    assert [type_ for type_, _ in await told(database)] == ["node.acceptance.started", "node.adopted"]


async def test_a_start_that_is_cut_off_leaves_nothing_and_is_made_anew(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id, _ = await pooled(database, server, BOTH)
    await adopt(server, node_id)
    before = await rows(database)

    async def cut_off(*_: object) -> None:
        raise ConnectionResetError

    for step in ("save_attempts", "save_adopted"):
        with monkeypatch.context() as patch:
            patch.setattr(f"reconcilers.acceptance.store.{step}", cut_off)
            with pytest.raises(ConnectionResetError):
                await acceptance(database, utc_now).activate()
        assert await rows(database) == before
    assert await look(database) == 1
    assert len((await show(server, node_id))["commands"]) == 2


async def test_what_is_elsewhere_in_its_life_or_a_tenants_is_not_adopted(
    database: Database, server: RunningServer
) -> None:
    node_id, _ = await pooled(database, server, NVML)
    for client, code in ((server.agent, "FORBIDDEN"), (server.stranger, "NOT_FOUND")):
        (error,) = (await client.send(ADOPT, id=node_id))["errors"]
        assert error["extensions"]["code"] == code
    await server.operator.data(TRUST, id=node_id, trust="TENANT_CONTROLLED")
    (error,) = (await server.operator.send(ADOPT, id=node_id))["errors"]
    assert error["extensions"]["code"] == "CONFLICT"
    await server.operator.data(TRUST, id=node_id, trust="PLATFORM")
    async with database.transaction() as tx:
        await tx.execute("update nodes set provision_state = 'retired'")
    (error,) = (await server.operator.send(ADOPT, id=node_id))["errors"]
    assert error["extensions"]["code"] == "CONFLICT"
    assert "retired" in error["message"]
    assert await look(database) == 0


async def test_what_a_tenants_agent_answers_adopts_nothing(database: Database, server: RunningServer) -> None:
    node_id, _ = await pooled(database, server, NVML)
    await adopt(server, node_id)
    await look(database)
    (nvml,) = (await show(server, node_id))["commands"]
    await server.operator.data(TRUST, id=node_id, trust="TENANT_CONTROLLED")
    await end(server.agent, node_id, nvml, PASSED)
    assert await look(database) == 1
    await server.operator.data(TRUST, id=node_id, trust="PLATFORM")
    assert await look(database) == 0
    node = await show(server, node_id)
    assert (node["provisionState"], node["failed"]["reason"]) == ("ADOPTING", "TenantControlled")


async def test_the_servers_own_keys_are_nobody_elses(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    given = {"nodeId": node_id, "kind": "diag.nvml", "key": f"acceptance:{node_id}:1:diag.nvml"}
    (error,) = (await server.operator.send(ISSUE, input=given))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert error["message"].startswith("key")
