"""Applying inventories: batches, faults that stay with their node, and races for a device."""

import asyncio
from functools import partial
from typing import Any

import asyncpg
import pytest

from db.database import Database
from domain.inventory import InventoryOutcome, NodeState, Unchanged
from domain.trust import take_report
from reconcilers import inventory
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from reconcilers.loop import Activation
from tests.support.server import STATUS, RunningServer, applied, hello, ingest, report, running_server
from web.app import utc_now

Outcome = InventoryOutcome | Unchanged


def gpus(*uuids: str) -> dict[str, Any]:
    return {"gpus": {"enumeration": "complete", "gpus": [{"uuid": uuid} for uuid in uuids]}}


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose inventory reconciler is run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _status(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await server.operator.data(STATUS, id=node_id))["computeNode"])


async def test_a_node_that_cannot_be_applied_keeps_its_last_good_inventory_and_stops_nobody(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = [await hello(server.agent, name) for name in ("good", "bad")]
    for node_id in (good, bad):
        await ingest(server.agent, node_id, {"os": {"kernel": "6.1.0"}})
    await apply_pending(database, utc_now)
    last_good = (await _status(server, bad))["latestSnapshot"]

    def failing(state: NodeState, *given: Any) -> Outcome:  # noqa: ANN401 - the decision's signature
        if state.node_id == bad:
            raise ZeroDivisionError("a section that decodes but cannot be planned")
        return take_report(state, *given)

    monkeypatch.setattr(inventory, "take_report", failing)
    for node_id in (good, bad):
        await ingest(server.agent, node_id, {"os": {"kernel": "6.2.0"}})
    await apply_pending(database, utc_now)
    assert (await _status(server, good))["inventoryStatus"]["state"] == "APPLIED"
    failed = await _status(server, bad)
    assert failed["inventoryStatus"]["state"] == "FAILED"
    assert "cannot be planned" in failed["inventoryStatus"]["error"]
    assert failed["latestSnapshot"] == last_good
    assert (await apply_pending(database, utc_now)).done == 0  # the same set is not tried again and again

    monkeypatch.undo()
    await ingest(server.agent, bad, {"os": {"kernel": "6.3.0"}})
    await apply_pending(database, utc_now)
    assert (await _status(server, bad))["inventoryStatus"]["state"] == "APPLIED"


async def test_applying_again_writes_nothing(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, gpus("GPU-1"))
    assert (await apply_pending(database, utc_now)).done == 1
    async with database.transaction() as tx:
        before = await tx.fetch("select xmin::text, ctid::text from devices union all select xmin::text, '' from nodes")
    await ingest(server.agent, node_id, gpus("GPU-1"))
    assert (await apply_pending(database, utc_now)).done == 0
    async with database.transaction() as tx:
        after = await tx.fetch("select xmin::text, ctid::text from devices union all select xmin::text, '' from nodes")
    assert before == after


async def test_a_set_is_applied_only_when_all_its_bytes_are_here(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    record = """
    mutation ($entries: [HashReportInput!]!) { recordInventoryHashes(entries: $entries) { requestSections } }
    """
    hashes = [{"name": name, "sha256": "0" * 64} for name in ("cpu", "memory")]
    await server.agent.data(record, entries=[{"nodeId": node_id, "hashes": hashes}])
    await ingest(server.agent, node_id, {"os": {"kernel": "6.1.0"}})
    assert (await apply_pending(database, utc_now)).done == 0
    status = (await _status(server, node_id))["inventoryStatus"]
    assert (status["state"], status["missingSections"]) == ("PENDING", ["cpu", "memory"])


async def test_a_device_of_another_node_is_left_alone_and_told(database: Database, server: RunningServer) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    await ingest(server.agent, first, gpus("GPU-shared", "GPU-1"))
    await apply_pending(database, utc_now)
    await ingest(server.agent, second, gpus("GPU-shared", "GPU-2"))
    await apply_pending(database, utc_now)
    found = await server.operator.data(
        """
        query { nodes { nodes { hostname noScheduleReasons
            devices { nodes { id } } conditions(status: TRUE) { type message } } } }
        """
    )
    nodes = {node["hostname"]: node for node in found["nodes"]["nodes"]}
    assert [device["id"] for device in nodes["first"]["devices"]["nodes"]] == ["GPU-1", "GPU-shared"]
    assert [device["id"] for device in nodes["second"]["devices"]["nodes"]] == ["GPU-2"]
    assert nodes["first"]["conditions"] == []
    assert [condition["type"] for condition in nodes["second"]["conditions"]] == ["DuplicateIdentity"]
    assert nodes["second"]["noScheduleReasons"] == ["DuplicateIdentity"]
    assert first in nodes["second"]["conditions"][0]["message"]


async def test_a_device_that_its_owner_lost_goes_to_the_node_that_reports_it(
    database: Database, server: RunningServer
) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    for node_id in (first, second):
        await ingest(server.agent, node_id, gpus("GPU-shared"))
        await apply_pending(database, utc_now)
    assert (await conflicts(database).activate()).done == 0  # nothing has changed
    snapshots = "select count(*) from inventory_snapshots"
    async with database.transaction() as tx:
        before = await tx.value(snapshots)
    await ingest(server.agent, first, gpus("GPU-1"))
    await apply_pending(database, utc_now)
    await conflicts(database).activate()
    await apply_pending(database, utc_now)
    async with database.transaction() as tx:
        assert await tx.value("select node_id from devices where id = 'GPU-shared'") == second
        assert await tx.value("select status from node_conditions where node_id = $1", second) == "false"
        assert await tx.value("select no_schedule_reasons from nodes where id = $1", second) == []
        assert await tx.value(snapshots) == before + 1  # the same set planned anew is no new snapshot
    assert (await _status(server, second))["inventoryStatus"]["state"] == "APPLIED"


async def test_a_tenant_is_not_told_another_tenants_node(database: Database, server: RunningServer) -> None:
    theirs = await hello(server.stranger, "theirs")
    await ingest(server.stranger, theirs, gpus("GPU-shared"))
    await apply_pending(database, utc_now)
    await ingest(server.agent, await hello(server.agent, "ours"), gpus("GPU-shared"))
    await apply_pending(database, utc_now)
    found = await server.operator.data("{ nodes { nodes { conditions { message } } } }")
    message = found["nodes"]["nodes"][0]["conditions"][0]["message"]
    assert theirs not in message
    assert "another tenant's node" in message


async def test_a_moment_of_the_database_is_no_fault_of_the_node(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, gpus("GPU-1"))

    async def cancelled(*_: Any) -> None:  # noqa: ANN401 - whatever is saved
        raise asyncpg.QueryCanceledError

    monkeypatch.setattr(inventory, "save_decisions", cancelled)
    await apply_pending(database, utc_now)
    assert (await _status(server, node_id))["inventoryStatus"]["state"] == "PENDING"
    monkeypatch.undo()
    await apply_pending(database, utc_now)
    assert (await _status(server, node_id))["inventoryStatus"]["state"] == "APPLIED"


async def test_the_latest_snapshot_is_the_last_applied_whatever_the_clock_that_named_it(
    database: Database, owner: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, {"os": {"kernel": "6.1.0"}})
    await apply_pending(database, utc_now)
    ahead = "inv_7zzzzzzzzz0000000000000000"  # by a process whose clock is far ahead
    async with owner.transaction() as tx:
        await tx.execute("update inventory_snapshots set id = $1", ahead)
        await tx.execute("update node_inventory set snapshot_id = $1", ahead)
    await ingest(server.agent, node_id, {"os": {"kernel": "6.2.0"}})
    await apply_pending(database, utc_now)
    status = await _status(server, node_id)
    assert status["latestSnapshot"]["digest"] == status["inventoryStatus"]["appliedDigest"]
    assert status["latestSnapshot"]["id"] > ahead


async def test_two_nodes_that_bring_one_device_in_the_same_batch_get_one_owner(
    database: Database, server: RunningServer
) -> None:
    for name in ("first", "second"):
        await ingest(server.agent, await hello(server.agent, name), gpus("GPU-shared"))
    await apply_pending(database, utc_now)
    async with database.transaction() as tx:
        assert await tx.value("select count(*) from devices") == 1
        assert await tx.value("select count(*) from node_conditions where type = 'DuplicateIdentity'") == 1
        assert await tx.value("select count(*) from node_inventory where applied = reported") == 2


async def test_reconcilers_of_many_processes_share_the_work_and_do_none_of_it_twice(
    database: Database, server: RunningServer
) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(12)]
    for node_id in nodes:
        await ingest(server.agent, node_id, {"os": {"kernel": "6.1.0"}})
    await asyncio.gather(*(apply_pending(database, utc_now, limit=3) for _ in range(8)))
    while (await apply_pending(database, utc_now, limit=3)).done:
        pass
    async with database.transaction() as tx:
        assert await tx.value("select count(*) from inventory_snapshots") == len(nodes)
        assert await tx.value("select count(*) from node_inventory where applied = reported") == len(nodes)


async def test_many_that_wait_are_applied_in_lanes_each_once(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(9)]
    for number, node_id in enumerate(nodes):
        await ingest(server.agent, node_id, gpus(f"GPU-{number}"))
    monkeypatch.setattr(inventory, "apply_pending", partial(apply_pending, limit=2))
    assert await inventory.inventory(database, utc_now).activate() == Activation(len(nodes), more=False)
    async with database.transaction() as tx:
        assert await tx.value("select count(*) from inventory_snapshots") == len(nodes)
        assert await tx.value("select count(*) from devices") == len(nodes)
        assert await tx.value("select count(*) from node_inventory where applied = reported") == len(nodes)


async def test_a_moment_of_the_database_ends_all_lanes_with_itself(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def applying(*_: Any) -> Activation:  # noqa: ANN401 - whatever is given
        if len(calls) == inventory.LANES:
            raise ConnectionResetError
        calls.append(True)
        if len(calls) == inventory.LANES:
            await asyncio.sleep(3600)
        return Activation(1, more=True)

    calls: list[bool] = []
    monkeypatch.setattr(inventory, "apply_pending", applying)
    with pytest.raises(ConnectionResetError):
        await inventory.inventory(database, utc_now).activate()


async def test_a_running_server_applies_by_itself(database: Database) -> None:
    async with running_server(database) as running:
        node_id = await report(running.agent, "n1", gpus("GPU-1"))
        assert (await applied(running.agent, node_id))["inventoryStatus"]["state"] == "APPLIED"
