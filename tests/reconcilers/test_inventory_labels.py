"""Labels are written with the inventory that tells them, and only when they change."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from db.database import Database
from reconcilers.inventory import apply_pending
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose inventory reconciler is run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


def gpus(*uuids: str, name: str = "NVIDIA H100 80GB HBM3", **more: str) -> dict[str, Any]:
    cards = [{"uuid": uuid, "name": name, "vramMiB": 81559} for uuid in uuids]
    return {"enumeration": "complete", "driverVersion": "580.95.05", "gpus": cards, **more}


async def labels_of(server: RunningServer, node_id: str) -> dict[str, str]:
    query = "query ($id: ID!) { computeNode(id: $id) { labels { key value source } } }"
    labels = (await server.operator.data(query, id=node_id))["computeNode"]["labels"]
    assert {label["source"] for label in labels} <= {"INVENTORY"}
    return {label["key"]: label["value"] for label in labels}


async def test_an_applied_inventory_labels_its_node_and_selectors_find_it(
    database: Database, server: RunningServer
) -> None:
    node_id, other = [await hello(server.agent, name) for name in ("n1", "n2")]
    await ingest(server.agent, node_id, {"gpus": gpus("GPU-1", "GPU-2"), "os": {"kernel": "6.8.0"}})
    await ingest(server.agent, other, {"gpus": gpus("GPU-3", name="NVIDIA A30"), "cpu": {"model": "One (R) Two"}})
    await apply_pending(database, utc_now)
    assert await labels_of(server, node_id) == {
        "gpu.present": "true",
        "gpu.count": "2",
        "gpu.product": "H100-SXM5-80GB",
        "gpu.model": "H100",
        "gpu.vramGiB": "80",
        "nvidia.driver.version": "580.95.05",
        "os.kernel": "6.8.0",
    }
    assert (await labels_of(server, other))["cpu.model"] == "One-Two"
    found = await server.operator.data(
        '{ nodes(filter: {selector: "gpu.model=H100,gpu.count>1,gpu.present"}) { nodes { id } } }'
    )
    assert found["nodes"]["nodes"] == [{"id": node_id}]


async def test_a_cut_enumeration_keeps_what_was_said_of_gpus_while_the_rest_goes_on(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, {"gpus": gpus("GPU-1", "GPU-2"), "os": {"kernel": "6.8.0"}})
    await apply_pending(database, utc_now)
    before = await labels_of(server, node_id)
    cut = gpus("GPU-1", enumeration="incomplete", reason="one did not answer")
    await ingest(server.agent, node_id, {"gpus": cut, "os": {"kernel": "6.8.1"}})
    await apply_pending(database, utc_now)
    assert await labels_of(server, node_id) == before | {"os.kernel": "6.8.1"}
    await ingest(server.agent, node_id, {"gpus": gpus()})
    await apply_pending(database, utc_now)
    assert await labels_of(server, node_id) == {
        "gpu.present": "false",
        "gpu.count": "0",
        "nvidia.driver.version": "580.95.05",
        "os.kernel": "6.8.1",
    }


async def test_a_new_inventory_that_tells_the_same_labels_leaves_the_node_unwritten(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, {"os": {"kernel": "6.8.0"}})
    await apply_pending(database, utc_now)
    version = "select ctid::text || xmin::text from nodes where id = $1"
    async with database.transaction() as tx:
        before = await tx.value(version, node_id)
    await ingest(server.agent, node_id, {"os": {"kernel": "6.8.0", "arch": "x86_64"}})
    assert (await apply_pending(database, utc_now)).done == 1
    async with database.transaction() as tx:
        assert await tx.value(version, node_id) == before
