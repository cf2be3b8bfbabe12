"""Remediation, from a fault in a row to a node that works again or waits for an operator, on real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from db.database import Database, Transaction
from reconcilers.commands import commands as expiry
from reconcilers.inventory import apply_pending
from reconcilers.remediation import remediation
from tests.support.booking import book, end_bookings
from tests.support.rows import Rows, written_rows
from tests.support.server import RunningServer, hello, ingest, running_server
from tests.support.silence import silence
from web.app import utc_now

TAKE: Final = "mutation ($id: ID!) { takeCommands(nodeId: $id) { id kind payload issuedBy } }"
START: Final = "mutation ($input: StartCommandInput!) { startCommand(input: $input) { id } }"
COMPLETE: Final = "mutation ($input: CommandResultInput!) { completeCommand(input: $input) { state } }"
CANCEL: Final = "mutation ($id: ID!) { cancelCommand(id: $id) { state } }"
ALLOCATE: Final = "mutation ($input: AllocateInput!) { allocate(input: $input) { node { id } } }"
TRUST: Final = "mutation ($id: ID!) { setTrust(id: $id, trust: TENANT_CONTROLLED) { id } }"
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) {
    maintenance maintenanceReason maintenanceBy noScheduleReasons
    conditions(status: TRUE) { type }
    devices { nodes { id healthy } }
    remediationRuns { nodes {
        remedy deviceId faults { condition deviceId } attempt state reason bootId finishedAt escalatedAt
        command { id kind state }
    } }
} }
"""
TOLD: Final = "select type, payload from outbox where type like '%.remediation.%' order by sequence"
STATUS: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { message } } }"
HOUR: Final = timedelta(hours=1)
PENDING: Final = {"health": {"rowRemap": {"pending": True, "failure": False}}}
FINE: Final = {"health": {"rowRemap": {"pending": False, "failure": False}}}


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


def _later(by: timedelta) -> Callable[[], datetime]:
    return lambda: utc_now() + by


async def _look(database: Database, by: timedelta = timedelta(), *, automatic: bool = True) -> int:
    """Look once, as a process that was just started, and see that a second look writes nothing."""
    done = (await remediation(database, _later(by), automatic=automatic).activate()).done
    before = await _rows(database)
    assert (await remediation(database, _later(by), automatic=automatic).activate()).done == 0
    assert await _rows(database) == before
    return done


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        return await written_rows(session)


async def _told(database: Database) -> list[str]:
    async with database.session() as session:
        return [row.type for row in await session.fetch(TOLD)]


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    node = dict((await server.operator.data(NODE, id=node_id))["computeNode"])
    return {
        **node,
        "conditions": [each["type"] for each in node["conditions"]],
        "devices": {each["id"]: each["healthy"] for each in node["devices"]["nodes"]},
        "remediationRuns": node["remediationRuns"]["nodes"],
    }


async def _run_of(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await _node(server, node_id))["remediationRuns"][0])


async def _pool(server: RunningServer, *node_ids: str, **policy: Any) -> str:  # noqa: ANN401 - any policy
    operator = server.operator
    site = (await operator.data('mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'))["createSite"]
    create = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
    given = {"name": "p", "siteId": site["id"], "class": "METAL_HOST", "policy": policy}
    pool = str((await operator.data(create, input=given))["createPool"]["id"])
    for node_id in node_ids:
        await operator.data(
            "mutation ($id: ID!, $p: ID) { assignPool(id: $id, poolId: $p) { id } }", id=node_id, p=pool
        )
    return pool


async def _inventory(database: Database, server: RunningServer, node_id: str, gpu: dict[str, Any]) -> None:
    gpus = [{"uuid": f"GPU-{node_id[-6:]}", "pciBusId": "00000000:11:00.0", **gpu}]
    await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": gpus}})
    assert (await apply_pending(database, utc_now)).done == 1


async def _tell(server: RunningServer, node_id: str, code: int, device_id: str | None = None) -> None:
    xid = {"code": code, "address": "", "message": "told", "sequence": str(code), "deviceId": device_id}
    answers = await server.agent.data(STATUS, entries=[{"nodeId": node_id, "xids": [xid]}])
    assert answers["reportStatus"] == [{"error": None}]


async def _age(database: Database, by: timedelta = HOUR) -> None:
    """Let all that is wrong have been wrong for longer."""
    async with database.transaction() as tx:
        await tx.execute("update node_faults set since = since - $1::interval", by)
        await tx.execute("update device_health set since = since - $1::interval", by)


async def _obey(server: RunningServer, node_id: str, outcome: str = "SUCCEEDED", **result: Any) -> dict[str, Any]:  # noqa: ANN401
    """Do what the node is told, as its agent; returns the command."""
    (command,) = (await server.agent.data(TAKE, id=node_id))["takeCommands"]
    ref = {"nodeId": node_id, "commandId": command["id"]}
    await server.agent.data(START, input={**ref, "runId": "r"})
    await server.agent.data(COMPLETE, input={**ref, "outcome": outcome, **result})
    return dict(command)


async def _reboot(server: RunningServer, identity: str, boot_id: str) -> None:
    node_id = await hello(server.agent, identity, bootId=boot_id)
    assert (await _obey(server, node_id))["kind"] == "node.reboot"


async def _set(database: Database, node_id: str, column: str, value: object) -> None:
    async with database.transaction() as tx:
        await tx.execute(f"update nodes set {column} = $2 where id = $1", node_id, value)  # noqa: S608 - the test's own


async def test_a_node_with_xid_79_is_rebooted_once_and_takes_work_again(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    assert await _look(database) == 0
    await _tell(server, node_id, 79)
    assert await _look(database) == 1
    node = await _node(server, node_id)
    assert node["noScheduleReasons"] == ["Xid79", "Remediating"]
    (run,) = node["remediationRuns"]
    assert (run["remedy"], run["state"], run["attempt"], run["bootId"]) == ("REBOOT", "RUNNING", 1, "b1")
    assert run["faults"] == [{"condition": "Xid79", "deviceId": None}]
    assert (run["command"]["kind"], run["command"]["state"]) == ("node.reboot", "PENDING")
    await _reboot(server, "n1", "b2")
    assert await _look(database) == 1
    node = await _node(server, node_id)
    assert (node["noScheduleReasons"], node["conditions"], node["maintenance"]) == ([], [], False)
    assert node["remediationRuns"][0]["state"] == "SUCCEEDED"
    assert node["remediationRuns"][0]["finishedAt"] is not None
    async with database.session() as session:
        events = await session.fetch(TOLD)
        assert await session.value('select "end" from node_faults') == "rebooted"
        assert (
            await session.value("select idempotency_key from commands") == f"remediation:{events[0].payload['runId']}"
        )
    assert [event.type for event in events] == ["node.remediation.started", "node.remediation.succeeded"]
    assert (
        events[0].payload
        == events[1].payload
        == {
            "runId": events[0].payload["runId"],
            "remedy": "reboot",
            "deviceId": None,
            "causes": ["Xid79"],
            "attempt": 1,
            "commandId": run["command"]["id"],
            "reason": None,
        }
    )


async def test_nothing_is_done_to_a_node_that_an_allocation_holds_and_none_is_given_one_during_it(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _inventory(database, server, node_id, PENDING)
    gpu = f"GPU-{node_id[-6:]}"
    await book(database, node_id, gpu)
    await book(database, node_id, after=HOUR)
    assert await _look(database) == 0, "somebody works on it"
    await end_bookings(database, gpu)
    assert await _look(database) == 0, "its allocation goes on without a device"
    async with database.transaction() as tx:
        await tx.execute("delete from allocations where lower(during) < now()")
        await tx.execute("update allocations set during = tstzrange(now() + interval '5 minutes', null)")
    assert await _look(database) == 0, "it would begin before the command's time to start is over"
    async with database.transaction() as tx:
        await tx.execute("update allocations set during = tstzrange(now() + interval '20 minutes', null)")
    assert await _look(database) == 1
    asked = {"shardId": "s", "nodeId": node_id, "memoryGB": 1}
    (error,) = (await server.operator.send(ALLOCATE, input=asked))["errors"]
    assert "Remediating" in error["message"]


async def test_of_a_claim_and_a_run_that_come_at_once_a_node_gets_one(
    database: Database, server: RunningServer
) -> None:
    nodes = [await hello(server.agent, f"n{number}", bootId="b1") for number in range(8)]
    await _pool(server, *nodes, disruptionBudget=1.0)
    for number, node_id in enumerate(nodes):
        gpu = {"uuid": f"GPU-{number}", **PENDING}
        await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": [gpu]}})
    await apply_pending(database, utc_now)
    await _age(database)
    claims = [{"shardId": node_id, "nodeId": node_id, "memoryGB": 1} for node_id in nodes]
    answers, *_ = await asyncio.gather(
        asyncio.gather(*(server.operator.send(ALLOCATE, input=claim) for claim in claims)),
        *(remediation(database, utc_now).activate() for _ in range(3)),
    )
    async with database.session() as session:
        out = {row.node_id for row in await session.fetch("select node_id from remediation_runs")}
    claimed = {node_id for node_id, answer in zip(nodes, answers, strict=True) if "errors" not in answer}
    assert out.isdisjoint(claimed)
    await remediation(database, utc_now).activate()
    async with database.session() as session:
        out = {row.node_id for row in await session.fetch("select node_id from remediation_runs")}
    assert out | claimed == set(nodes)
    assert out.isdisjoint(claimed)


@pytest.mark.parametrize("more", [{}, {"maintenance": True}])
async def test_a_fault_of_a_boot_that_is_over_ends_without_a_second_reboot(
    database: Database, server: RunningServer, more: dict[str, bool]
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await book(database, node_id)
    await _tell(server, node_id, 79)
    assert await _look(database) == 0
    for column, value in more.items():
        await _set(database, node_id, column, value)
    await hello(server.agent, "n1", bootId="b2")
    assert await _look(database) == 1
    node = await _node(server, node_id)
    (run,) = node["remediationRuns"]
    assert (run["state"], run["reason"], run["command"], run["bootId"]) == ("SUCCEEDED", "boot-over", None, "b1")
    assert (node["conditions"], node["noScheduleReasons"]) == ([], [])
    assert await _told(database) == ["node.remediation.started", "node.remediation.succeeded"]
    async with database.session() as session:
        assert await session.value("select count(*) from commands") == 0


async def test_a_gpu_is_reset_and_the_next_inventory_confirms_it(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _inventory(database, server, node_id, PENDING)
    gpu = f"GPU-{node_id[-6:]}"
    await _tell(server, node_id, 119, gpu)
    assert await _look(database) == 1
    command = await _obey(server, node_id)
    assert (command["kind"], command["payload"], command["issuedBy"]) == (
        "gpu.reset",
        {"deviceId": gpu},
        "remediation",
    )
    assert await _look(database) == 0, "whether it helped is for the next inventory to say"
    await _inventory(database, server, node_id, FINE)
    assert (await _node(server, node_id))["devices"] == {gpu: False}, "the Xid stands until the run has ended"
    assert await _look(database) == 1
    node = await _node(server, node_id)
    assert (node["devices"], node["conditions"], node["noScheduleReasons"]) == ({gpu: True}, [], [])
    run = node["remediationRuns"][0]
    assert (run["remedy"], run["deviceId"], run["state"]) == ("GPU_RESET", gpu, "SUCCEEDED")
    assert sorted(each["condition"] for each in run["faults"]) == ["RowRemapPending", "Xid119"]
    async with database.session() as session:
        assert await session.value('select "end" from node_faults') == "reset"


async def test_an_inventory_that_did_not_change_confirms_a_reset_when_the_agent_collected_it_after(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _inventory(database, server, node_id, FINE)
    await _tell(server, node_id, 119, f"GPU-{node_id[-6:]}")
    assert await _look(database) == 1
    async with database.session() as session:
        digest = await session.value("select applied_digest from node_inventory")
    await _obey(server, node_id, result={"digest": digest})
    assert await _look(database) == 1
    assert (await _run_of(server, node_id))["state"] == "SUCCEEDED"


async def test_two_resets_that_do_not_help_put_the_node_into_maintenance_until_an_operator_ends_it(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _inventory(database, server, node_id, PENDING)
    for number in (1, 2):
        by = number * HOUR
        assert await _look(database, by) == 1
        await _obey(server, node_id)
        await _inventory(database, server, node_id, {**PENDING, "index": number})
        assert await _look(database, by) == 1
        run = await _run_of(server, node_id)
        assert (run["state"], run["reason"], run["attempt"]) == ("UNCLEARED", "still-faulty", number)
        assert await _look(database, by) == 0, "the same again is not tried at once"
    assert await _look(database, 3 * HOUR) == 1
    node = await _node(server, node_id)
    assert node["maintenance"]
    assert [bool(run["escalatedAt"]) for run in node["remediationRuns"]] == [True, False]
    assert (await _told(database))[-1] == "node.remediation.escalated"
    assert await _look(database, 100 * HOUR) == 0
    await _set(database, node_id, "maintenance", value=False)
    assert await _look(database, 101 * HOUR) == 1
    assert (await _run_of(server, node_id))["attempt"] == 1


@pytest.mark.parametrize(
    ("how", "state", "reason"),
    [("FAILED", "FAILED", "unsupported"), ("cancel", "CANCELLED", "cancelled"), ("expire", "FAILED", "not-started")],
)
async def test_a_run_that_is_not_done_puts_the_node_into_maintenance_and_nothing_more_is_run(
    database: Database, server: RunningServer, how: str, state: str, reason: str
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _tell(server, node_id, 79)
    assert await _look(database) == 1
    match how:
        case "cancel":
            await server.operator.data(CANCEL, id=(await _run_of(server, node_id))["command"]["id"])
        case "expire":
            await expiry(database, _later(timedelta(minutes=11))).activate()
        case _:
            await _obey(server, node_id, how, reason=reason)
    assert await _look(database) == 1
    node = await _node(server, node_id)
    run = node["remediationRuns"][0]
    assert (run["state"], run["reason"], bool(run["escalatedAt"])) == (state, reason, True)
    assert (node["maintenance"], node["noScheduleReasons"]) == (True, ["Xid79"])
    assert (node["maintenanceReason"].endswith(f"(reboot): {reason}"), node["maintenanceBy"]) == (True, "remediation")
    assert await _told(database) == ["node.remediation.started", "node.remediation.escalated"]
    assert await _look(database, 48 * HOUR) == 0


async def test_a_fault_that_comes_back_after_two_reboots_is_left_to_an_operator(
    database: Database, server: RunningServer
) -> None:
    for number in (1, 2):
        node_id = await hello(server.agent, "n1", bootId=f"b{number}")
        await _tell(server, node_id, 79)
        assert await _look(database) == 1
        await _reboot(server, "n1", f"b{number + 1}")
        assert await _look(database) == 1
    await _tell(server, node_id, 79)
    assert await _look(database) == 1
    node = await _node(server, node_id)
    assert (node["maintenance"], [run["attempt"] for run in node["remediationRuns"]]) == (True, [2, 1])


async def test_no_more_of_a_pool_are_out_than_its_budget_however_many_look_at_once(
    database: Database, server: RunningServer
) -> None:
    nodes = [await hello(server.agent, f"n{number}", bootId="b1") for number in range(6)]
    await _pool(server, *nodes, disruptionBudget=0.34)
    for node_id in reversed(nodes):
        await _age(database)
        await _tell(server, node_id, 79)
    await _age(database)
    looks = [remediation(database, utc_now) for _ in range(4)]
    for _ in range(3):
        await asyncio.gather(*(look.activate() for look in looks))
        async with database.session() as session:
            out = await session.fetch("select node_id from remediation_runs where finished_at is null")
            assert await session.value("select count(*) from commands") == 2
        assert {row.node_id for row in out} == set(nodes[-2:]), "those that wait longest"
    await _reboot(server, "n5", "b2")
    assert [(await looks[0].activate()).done for _ in range(3)] == [1, 1, 0], "one run ends, and the next begins"
    assert (await _run_of(server, nodes[3]))["state"] == "RUNNING"


async def test_of_nodes_without_a_pool_one_is_out_at_a_time(database: Database, server: RunningServer) -> None:
    nodes = [await hello(server.agent, f"n{number}", bootId="b1") for number in range(3)]
    for node_id in nodes:
        await _tell(server, node_id, 79)
    assert await _look(database) == 1


async def test_a_pool_of_which_many_turn_unhealthy_at_once_is_left_alone_until_that_has_passed(
    database: Database, server: RunningServer
) -> None:
    nodes = [await hello(server.agent, f"n{number}", bootId="b1") for number in range(4)]
    pool = await _pool(server, *nodes)
    await _tell(server, nodes[0], 79)
    await _tell(server, nodes[1], 54)
    async with database.transaction() as tx:
        assert await tx.value("select count(*) from node_faults where condition is not null") == 2
    await _tell(server, nodes[2], 95)
    assert await _look(database) == 1
    paused = "query ($id: ID!) { node(id: $id) { ... on Pool { remediationPausedSince } } }"
    assert (await server.operator.data(paused, id=pool))["node"]["remediationPausedSince"] is not None
    assert await _told(database) == ["pool.remediation.paused"]
    assert await _look(database, timedelta(minutes=9)) == 0
    assert await _look(database, timedelta(minutes=11)) == 2, "the pause ends, and a run begins"
    assert (await server.operator.data(paused, id=pool))["node"]["remediationPausedSince"] is None
    async with database.session() as session:
        events = await session.fetch(TOLD)
    assert [event.type for event in events][:2] == ["pool.remediation.paused", "pool.remediation.resumed"]
    assert events[0].payload == {"poolId": pool, "nodes": 4, "turnedUnhealthy": 2}


async def test_remediation_that_is_turned_off_begins_nothing_and_ends_what_was_begun(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _tell(server, node_id, 79)
    assert await _look(database, automatic=False) == 0
    assert await _look(database) == 1
    await _reboot(server, "n1", "b2")
    assert await _look(database, automatic=False) == 1
    assert (await _run_of(server, node_id))["state"] == "SUCCEEDED"


async def test_what_a_tenant_takes_over_is_called_off(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _tell(server, node_id, 79)
    assert await _look(database) == 1
    await server.operator.data(TRUST, id=node_id)
    assert await _look(database) == 1
    node = await _node(server, node_id)
    run = node["remediationRuns"][0]
    assert (run["state"], run["command"]["state"], run["escalatedAt"]) == ("CANCELLED", "CANCELLED", None)
    assert (node["maintenance"], node["noScheduleReasons"]) == (False, ["Xid79"])


async def test_a_node_that_is_not_heard_or_that_somebody_else_holds_is_looked_at_the_next_time(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _tell(server, node_id, 79)
    await silence(database, 60, node_id)
    assert await _look(database) == 0
    await silence(database, 1, node_id)
    async with database.transaction() as tx:
        await tx.execute("select from nodes where id = $1 for update", node_id)
        assert (await remediation(database, utc_now).activate()).done == 0
    assert await _look(database) == 1


async def test_a_look_that_dies_between_any_two_statements_leaves_nothing_and_the_next_one_does_it_all(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = await hello(server.agent, "n1", bootId="b1")
    await _tell(server, node_id, 79)
    for step in ("begins", "ends"):
        deaths = 0
        while True:
            before = await _rows(database)
            with monkeypatch.context() as patched:
                _die_after(patched, deaths)
                try:
                    done = (await remediation(database, utc_now).activate()).done
                except _Killed:
                    deaths += 1
                    assert await _rows(database) == before
                    continue
            break
        assert (done, deaths > 4) == (1, True), step
        if step == "begins":
            await _reboot(server, "n1", "b2")
    assert await _told(database) == ["node.remediation.started", "node.remediation.succeeded"]


class _Killed(Exception):  # noqa: N818 - no error
    """The process is gone."""


def _die_after(patched: pytest.MonkeyPatch, statements: int) -> None:
    """Let a process die before the statement that follows so many that write."""
    execute, left = Transaction.execute, [statements]

    async def counted(self: Transaction, *args: Any) -> Any:  # noqa: ANN401
        if not left[0]:
            raise _Killed
        left[0] -= 1
        return await execute(self, *args)

    patched.setattr(Transaction, "execute", counted)
