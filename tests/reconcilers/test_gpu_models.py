"""A newer table of GPU models: who was planned by an earlier one is planned anew, without a report."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from db.database import Database
from domain.gpu_models import GPU_MODELS_VERSION
from reconcilers import gpu_models as reconciler
from reconcilers.gpu_models import gpu_models
from reconcilers.inventory import apply_pending
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now

DEVICES = "{ devices { nodes { id gpuProduct gpuModel } } }"


def gpus(**names: str) -> dict[str, Any]:
    return {
        "gpus": {
            "enumeration": "complete",
            "gpus": [{"uuid": f"GPU-{key}", "name": name, "vramMiB": 81_559} for key, name in names.items()],
        }
    }


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as running:
        yield running


async def node_with(server: RunningServer, database: Database, name: str, sections: Mapping[str, Any]) -> str:
    node_id = await hello(server.agent, name)
    await ingest(server.agent, node_id, sections)
    await apply_pending(database, utc_now)
    return node_id


async def rows(database: Database, query: str) -> list[Any]:
    async with database.transaction() as tx:
        return await tx.fetch(query)


async def change(database: Database, statement: str) -> None:
    async with database.transaction() as tx:
        await tx.execute(statement)


async def test_a_set_is_noted_with_the_table_it_was_planned_by(database: Database, server: RunningServer) -> None:
    await node_with(server, database, "n1", gpus(a="NVIDIA H100 80GB HBM3"))
    assert [row.gpu_models_version for row in await rows(database, "select * from node_inventory")] == [
        GPU_MODELS_VERSION
    ]
    assert (await server.operator.data(DEVICES))["devices"]["nodes"] == [
        {"id": "GPU-a", "gpuProduct": "H100-SXM5-80GB", "gpuModel": "H100"}
    ]
    assert (await gpu_models(database).activate()).done == 0


async def test_what_an_earlier_table_could_not_name_is_named_without_a_report(
    database: Database, server: RunningServer
) -> None:
    await node_with(server, database, "n1", gpus(a="NVIDIA H100 80GB HBM3", b="NVIDIA H100 80GB HBM3"))
    # As a server with an earlier table had left it.
    await change(database, "update node_inventory set gpu_models_version = 1")
    await change(database, "update devices set gpu_product = 'H100-80GB-HBM3', gpu_model = 'other' where id = 'GPU-b'")
    await change(
        database,
        "insert into node_conditions (node_id, tenant_id, type, status, no_schedule, since)"
        " select id, tenant_id, 'GpuModelUnknown', 'true', true, now() from nodes",
    )
    await change(database, "update nodes set no_schedule_reasons = '{GpuModelUnknown,Foreign}'")
    untouched = "select xmin::text from devices where id = 'GPU-a'"
    before = await rows(database, untouched)

    assert (await gpu_models(database).activate()).done == 1
    assert (await gpu_models(database).activate()).done == 0
    assert (await apply_pending(database, utc_now)).done == 1

    assert {row.gpu_product for row in await rows(database, "select gpu_product from devices")} == {"H100-SXM5-80GB"}
    assert await rows(database, untouched) == before
    assert len(await rows(database, "select from inventory_snapshots")) == 1
    (node,) = await rows(database, "select no_schedule_reasons from nodes")
    assert node.no_schedule_reasons == ["Foreign"]
    (condition,) = await rows(database, "select status from node_conditions where type = 'GpuModelUnknown'")
    assert condition.status == "false"
    (standing,) = await rows(database, "select gpu_models_version, replan from node_inventory")
    assert (standing.gpu_models_version, standing.replan) == (GPU_MODELS_VERSION, False)
    assert (await gpu_models(database).activate()).done == 0


async def test_planning_anew_what_did_not_change_writes_no_device_and_no_event(
    database: Database, server: RunningServer
) -> None:
    await node_with(server, database, "n1", gpus(a="NVIDIA H900"))
    await change(database, "update node_inventory set gpu_models_version = 2")
    query = """
    select xmin::text from devices union all select xmin::text from node_conditions
    union all select xmin::text from nodes
    union all select id::text from outbox union all select id from inventory_snapshots
    """
    before = await rows(database, query)
    assert (await gpu_models(database).activate()).done == 1
    assert (await apply_pending(database, utc_now)).done == 1
    assert await rows(database, query) == before
    (standing,) = await rows(database, "select gpu_models_version from node_inventory")
    assert standing.gpu_models_version == GPU_MODELS_VERSION


async def test_a_table_newer_than_ours_stays(database: Database, server: RunningServer) -> None:
    await node_with(server, database, "n1", gpus(a="NVIDIA H900"))
    await change(database, "update node_inventory set gpu_models_version = gpu_models_version + 1")
    assert (await gpu_models(database).activate()).done == 0


async def test_planning_anew_waits_behind_reports(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "WAITING_MAX", 3)
    for number in range(5):
        await node_with(server, database, f"n{number}", gpus(**{f"n{number}": "NVIDIA H200"}))
    await change(database, "update node_inventory set gpu_models_version = 2")
    await ingest(server.agent, await hello(server.agent, "reports"), gpus(other="NVIDIA H200"))
    assert [(await gpu_models(database).activate()).done for _ in range(2)] == [2, 0]
    assert (await apply_pending(database, utc_now)).done == 3
    assert [(await gpu_models(database).activate()).done for _ in range(2)] == [3, 0]


async def test_a_node_that_reported_nothing_yet_is_left_alone(database: Database, server: RunningServer) -> None:
    await hello(server.agent, "n1")
    assert (await gpu_models(database).activate()).done == 0
