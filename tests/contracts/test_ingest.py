"""Inventory from the API to devices, snapshots and diffs."""

from typing import Any

from db.database import Database
from tests.support.rows import written_rows
from tests.support.server import (
    INGEST,
    RECORD,
    RunningServer,
    applied,
    hash_of,
    hello,
    ingest,
    report,
    section,
)

GPU_A = {"uuid": "GPU-aaaaaaaa-1111-2222-3333-444444444444", "name": "NVIDIA H100 80GB HBM3", "vramMiB": 81559}
GPU_B = {"uuid": "GPU-bbbbbbbb-1111-2222-3333-444444444444", "name": "NVIDIA H100 80GB HBM3", "vramMiB": 81559}
DEVICES = "query ($id: ID!) { computeNode(id: $id) { devices { nodes { id class vramGiB healthy } totalCount } } }"
DIFF = """
query ($id: ID!) { inventoryDiff(nodeId: $id) { from { id } to { id digest } changes { type deviceId before after } } }
"""


def gpus(*entries: dict[str, Any], enumeration: str = "complete") -> dict[str, Any]:
    return {"enumeration": enumeration, "driverVersion": "580.105.08", "gpus": list(entries)}


async def test_a_first_report_becomes_snapshot_and_devices(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"gpus": gpus(GPU_A, GPU_B), "os": {"kernel": "6.1.0"}})
    found = await server.operator.data(DEVICES, id=node_id)
    devices = found["computeNode"]["devices"]
    assert [device["id"] for device in devices["nodes"]] == [GPU_A["uuid"], GPU_B["uuid"]]
    assert devices["totalCount"] == 2


async def test_a_gpu_that_a_complete_enumeration_lacks_is_missing(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"gpus": gpus(GPU_A, GPU_B)})
    await ingest(server.agent, node_id, {"gpus": gpus(GPU_A)})
    await applied(server.agent, node_id)
    changes = (await server.operator.data(DIFF, id=node_id))["inventoryDiff"]["changes"]
    assert [(change["type"], change["deviceId"]) for change in changes] == [("GPU_MISSING", GPU_B["uuid"])]
    found = await server.operator.data(DEVICES, id=node_id)
    assert [device["id"] for device in found["computeNode"]["devices"]["nodes"]] == [GPU_A["uuid"]]


async def test_an_incomplete_enumeration_keeps_the_last_good_gpus_and_says_so(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"gpus": gpus(GPU_A, GPU_B)})
    await ingest(
        server.agent, node_id, {"gpus": {**gpus(GPU_A, enumeration="incomplete"), "reason": "1 of 2 answered"}}
    )
    await applied(server.agent, node_id)
    found = await server.operator.data(
        "query ($id: ID!) { computeNode(id: $id) { devices { totalCount } conditions { type status message } } }",
        id=node_id,
    )
    assert found["computeNode"]["devices"]["totalCount"] == 2
    assert found["computeNode"]["conditions"] == [
        {"type": "InventoryDegraded", "status": "TRUE", "message": "1 of 2 answered"}
    ]


async def test_the_server_asks_only_for_bytes_it_lacks_for_this_node(server: RunningServer) -> None:
    given = section("os", {"kernel": "6.1.0"})
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    other = await hello(server.agent, "n2")
    entries = [{"nodeId": node_id, "hashes": [hash_of(given)]}, {"nodeId": other, "hashes": [hash_of(given)]}]
    slots = (await server.agent.data(RECORD, entries=entries))["recordInventoryHashes"]
    assert [slot["requestSections"] for slot in slots] == [[], ["os"]]


async def test_sections_that_are_sent_again_are_no_new_report(database: Database, server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"gpus": gpus(GPU_A)})
    async with database.session() as session:
        before = await written_rows(session)
        await ingest(server.agent, node_id, {"gpus": gpus(GPU_A)})
        after = await written_rows(session)
    for table in ("node_inventory", "inventory_sections"):
        assert after[table] == before[table]


async def test_a_bad_entry_fails_alone_and_stores_nothing(server: RunningServer) -> None:
    good, bad = await hello(server.agent, "good"), await hello(server.agent, "bad")
    wrong = {**section("os", {"kernel": "6.1.0"}), "sha256": "0" * 64}
    cpu = section("cpu", {"arch": "x86_64"})
    entries = [
        {"nodeId": bad, "sections": [cpu, wrong]},
        {"nodeId": good, "sections": [section("os", {"kernel": "6.1.0"})]},
        {"nodeId": "node_00000000000000000000000000", "sections": [section("os", {})]},
    ]
    slots = (await server.agent.data(INGEST, entries=entries))["ingestSections"]
    assert [slot["stored"] for slot in slots] == [[], ["os"], []]
    assert slots[0]["error"]["code"] == "INVALID_INPUT"
    assert (slots[0]["error"]["section"], slots[0]["error"]["place"]) == ("os", "sha256")
    assert slots[2]["error"]["code"] == "NOT_FOUND"
    rows = await server.agent.data(RECORD, entries=[{"nodeId": bad, "hashes": [hash_of(cpu)]}])
    assert rows["recordInventoryHashes"][0]["requestSections"] == ["cpu"]
