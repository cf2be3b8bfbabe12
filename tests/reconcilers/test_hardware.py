"""Hardware keys as inventory brings them: one node each, whoever comes first, in one batch or in a race."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.machines import machine
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now

NODES = """
{ nodes(orderBy: HOSTNAME) { nodes {
    id hostname fingerprint noScheduleReasons conditions(status: TRUE) { type reason message }
    inventoryStatus { state error } latestSnapshot { id } snapshots { totalCount }
    hardwareKey { key trusted evidence { field value known placeholder matched } }
} } }
"""


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose inventory reconciler is run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _nodes(server: RunningServer) -> dict[str, dict[str, Any]]:
    return {node["hostname"]: node for node in (await server.operator.data(NODES))["nodes"]["nodes"]}


async def _apply(database: Database) -> None:
    while (await apply_pending(database, utc_now)).done:
        pass


async def test_a_nodes_key_is_shown_with_its_evidence(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    assert (await _nodes(server))["n1"]["hardwareKey"] is None
    sections = machine("1")
    sections["system"]["boardSerial"] = "Default string"
    await ingest(server.agent, node_id, sections)
    await _apply(database)
    node = (await _nodes(server))["n1"]
    assert node["hardwareKey"]["trusted"]
    assert node["fingerprint"] is not None
    evidence = {each["field"]: each for each in node["hardwareKey"]["evidence"]}
    nothing = {"value": None, "known": False, "placeholder": False, "matched": None}
    assert evidence["chassisSerial"] == {"field": "chassisSerial", **nothing}
    void = {"value": "Default string", "known": True, "placeholder": True, "matched": None}
    assert evidence["boardSerial"] == {"field": "boardSerial", **void}
    assert evidence["systemSerial"]["value"] == sections["system"]["systemSerial"]
    await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-new"}]}})
    await _apply(database)
    changed = (await _nodes(server))["n1"]
    assert changed["hardwareKey"]["key"] != node["hardwareKey"]["key"]
    assert changed["fingerprint"] != node["fingerprint"]
    matched = {each["field"]: each["matched"] for each in changed["hardwareKey"]["evidence"]}
    assert matched == {
        "productUuid": True,
        "systemSerial": True,
        "boardSerial": False,
        "chassisSerial": False,
        "permanentMac": True,
        "gpuUuid": False,
    }


async def test_the_second_node_with_a_machines_key_waits(database: Database, server: RunningServer) -> None:
    for name in ("first", "second"):
        await ingest(server.agent, await hello(server.agent, name), machine("1"))
        await _apply(database)
    nodes = await _nodes(server)
    assert nodes["first"]["hardwareKey"]["key"] == nodes["second"]["hardwareKey"]["key"]
    assert [nodes[name]["hardwareKey"]["trusted"] for name in ("first", "second")] == [True, False]
    assert nodes["first"]["conditions"] == []
    [condition] = nodes["second"]["conditions"]
    assert condition["type"] == "DuplicateIdentity"
    assert f"its hardware is that of {nodes['first']['id']}" in condition["message"]
    assert nodes["second"]["noScheduleReasons"] == ["DuplicateIdentity"]


async def test_a_key_waits_also_after_its_node_has_other_hardware(database: Database, server: RunningServer) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    for node_id in (first, second):
        await ingest(server.agent, node_id, machine("1"))
        await _apply(database)
    await ingest(server.agent, first, machine("2"))
    await _apply(database)
    assert (await conflicts(database).activate()).done == 1
    await _apply(database)
    assert (await conflicts(database).activate()).done == 0
    nodes = await _nodes(server)
    assert nodes["first"]["hardwareKey"]["trusted"]
    assert not nodes["second"]["hardwareKey"]["trusted"]
    assert [each["reason"] for each in nodes["second"]["conditions"]] == ["HardwareKeyTaken"]


async def test_of_one_batch_one_node_gets_the_key(database: Database, server: RunningServer) -> None:
    for number in range(4):
        await ingest(server.agent, await hello(server.agent, f"n{number}"), {"system": machine("1")["system"]})
    await _apply(database)
    nodes = (await _nodes(server)).values()
    assert sorted(node["hardwareKey"]["trusted"] for node in nodes) == [False, False, False, True]
    assert sum(len(node["conditions"]) for node in nodes) == 3
    assert {node["inventoryStatus"]["state"] for node in nodes} == {"APPLIED"}


async def test_of_reconcilers_in_a_race_one_gives_the_key(database: Database, server: RunningServer) -> None:
    for number in range(12):
        await ingest(server.agent, await hello(server.agent, f"n{number}"), {"system": machine("1")["system"]})
    await asyncio.gather(*(apply_pending(database, utc_now, limit=2) for _ in range(8)))
    await _apply(database)
    nodes = (await _nodes(server)).values()
    assert {node["inventoryStatus"]["state"] for node in nodes} == {"APPLIED"}
    assert sorted(node["hardwareKey"]["trusted"] for node in nodes) == [*[False] * 11, True]
    assert sum(len(node["conditions"]) for node in nodes) == 11


async def test_a_tenant_is_not_told_whose_hardware_it_is(database: Database, server: RunningServer) -> None:
    theirs = await hello(server.stranger, "theirs")
    await ingest(server.stranger, theirs, {"system": machine("1")["system"]})
    await _apply(database)
    await ingest(server.agent, await hello(server.agent, "ours"), {"system": machine("1")["system"]})
    await _apply(database)
    [condition] = (await _nodes(server))["ours"]["conditions"]
    assert condition["message"] == "its hardware is that of another tenant's node"


async def test_a_section_that_did_not_come_keeps_the_key(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, machine("1"))
    await _apply(database)
    before = (await _nodes(server))["n1"]
    async with database.transaction() as tx:
        await tx.execute("update node_inventory set reported = reported - 'system' - 'nics'")
    await _apply(database)
    after = (await _nodes(server))["n1"]
    assert after["snapshots"]["totalCount"] == before["snapshots"]["totalCount"] + 1
    assert (after["hardwareKey"], after["fingerprint"]) == (before["hardwareKey"], before["fingerprint"])


async def test_two_machines_in_turns_are_told_once_and_make_no_storm(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    for digit in "121212121212":
        await ingest(server.agent, node_id, machine(digit))
        await _apply(database)
    node = (await _nodes(server))["n1"]
    assert node["snapshots"]["totalCount"] == 2
    assert [each["reason"] for each in node["conditions"]] == ["TwoMachines"]
    assert not node["hardwareKey"]["trusted"]
    async with database.transaction() as tx:
        told = await tx.fetch("select type, count(*) from outbox group by type order by type")
    counts = {row.type: row.count for row in told}
    assert counts["node.inventory.changed"] == 2
    assert counts["node.condition.changed"] == 1
    # What the machine that the node has reports goes on to be applied; the other's is refused, whatever changed.
    await ingest(server.agent, node_id, {**machine("2"), "os": {"kernel": "6.12.0"}})
    await _apply(database)
    assert (await _nodes(server))["n1"]["snapshots"]["totalCount"] == 3
    await ingest(server.agent, node_id, {**machine("1"), "os": {"kernel": "6.12.1"}})
    await _apply(database)
    refused = (await _nodes(server))["n1"]
    assert refused["snapshots"]["totalCount"] == 3
    assert refused["inventoryStatus"]["state"] == "FAILED"
    assert "another machine" in refused["inventoryStatus"]["error"]


async def test_a_machine_exchanged_once_is_an_exchange(
    database: Database, owner: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    for digit in "12":
        await ingest(server.agent, node_id, machine(digit))
        await _apply(database)
    # What was there long ago may come back.
    async with owner.transaction() as tx:
        await tx.execute("update inventory_snapshots set received_at = received_at - interval '11 minutes'")
    await ingest(server.agent, node_id, machine("1"))
    await _apply(database)
    node = (await _nodes(server))["n1"]
    assert node["conditions"] == []
    assert node["hardwareKey"]["trusted"]
    assert node["snapshots"]["totalCount"] == 3


async def test_a_machine_that_only_a_tenant_told_of_is_an_exchange_when_it_is_taken_for_real(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, machine("1"))
    await _apply(database)
    trust = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
    await server.operator.data(trust, id=node_id, trust="TENANT_CONTROLLED")
    for kernel in ("6.9.0", "6.9.1"):
        await ingest(server.agent, node_id, {**machine("2"), "os": {"kernel": kernel}})
        await _apply(database)
    await server.operator.data(trust, id=node_id, trust="PLATFORM")
    end = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { id } }"
    await server.operator.data(end, id=node_id)
    for kernel in ("6.9.1", "6.9.2"):
        await ingest(server.agent, node_id, {**machine("2"), "os": {"kernel": kernel}})
        await _apply(database)
    node = (await _nodes(server))["n1"]
    assert node["inventoryStatus"] == {"state": "APPLIED", "error": None}
    assert node["conditions"] == []
    assert node["hardwareKey"]["trusted"]
