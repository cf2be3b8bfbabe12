"""Devices written set-based and read back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from db.database import Database
from db.devices import DeviceTaken, add_devices, change_devices, device_of, devices_of_nodes
from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.ids import DeviceId, NodeId
from tests.support.server import RunningServer, hello


def gpu(node_id: NodeId, device_id: str) -> Device:
    """A GPU with a value in every field."""
    return Device(
        id=DeviceId(device_id),
        node_id=node_id,
        device_class=DeviceClass.GPU,
        parent_id=DeviceId("GPU-parent"),
        bookable=True,
        healthy=False,
        missing=True,
        partition_pending=True,
        gpu_product="H100-SXM5-80GB",
        gpu_model="H100",
        vram_gib=79.6,
        index=3,
        pci_bus_id="00000000:18:00.0",
        numa_node=1,
        architecture="Hopper",
        compute_capability="9.0",
        driver_version="580.95.05",
        mig_capable=True,
        nvlink_peers=(DeviceId("GPU-a"), DeviceId("GPU-b")),
        fabric_cluster="c",
        fabric_clique="1",
        attributes={"name": "é'\\", "migMode": {"current": False}, "ports": [{"port": 1}]},
        not_known={"serial": Availability.UNSUPPORTED},
    )


async def _stored(database: Database, *node_ids: NodeId) -> list[Device]:
    async with database.transaction() as tx:
        return [device_of(row) for row in await devices_of_nodes(tx, node_ids)]


async def _add(database: Database, devices: Sequence[Device]) -> None:
    async with database.transaction() as tx:
        await add_devices(tx, devices)


async def test_a_device_is_read_back_as_it_was_written_for_its_nodes_tenant(
    database: Database, server: RunningServer
) -> None:
    ours, theirs = NodeId(await hello(server.agent, "ours")), NodeId(await hello(server.stranger, "theirs"))
    bare = Device(id=DeviceId("d"), node_id=theirs, device_class=DeviceClass.DISK)
    await _add(database, [gpu(ours, "GPU-1"), bare])
    assert await _stored(database, ours) == [gpu(ours, "GPU-1")]
    assert await _stored(database, theirs) == [bare]
    async with database.transaction() as tx:
        rows = await tx.fetch("select d.tenant_id, n.tenant_id from devices d join nodes n on n.id = d.node_id")
    assert len({row[0] for row in rows}) == len(rows) == 2
    assert all(row[0] == row[1] for row in rows)


async def test_a_device_that_another_node_has_is_taken_and_nothing_is_written(
    database: Database, server: RunningServer
) -> None:
    ours, other = [NodeId(await hello(server.agent, name)) for name in ("ours", "other")]
    await _add(database, [gpu(other, "GPU-1")])
    with pytest.raises(DeviceTaken):
        await _add(database, [gpu(ours, "GPU-0"), gpu(ours, "GPU-1")])
    assert await _stored(database, ours, other) == [gpu(other, "GPU-1")]


async def test_only_a_nodes_own_devices_are_changed(database: Database, server: RunningServer) -> None:
    ours, other = [NodeId(await hello(server.agent, name)) for name in ("ours", "other")]
    await _add(database, [gpu(ours, "GPU-1"), gpu(other, "GPU-2")])
    moved = replace(gpu(ours, "GPU-1"), pci_bus_id="00000000:2A:00.0", nvlink_peers=(), not_known={})
    async with database.transaction() as tx:
        await change_devices(tx, [moved, gpu(ours, "GPU-2"), gpu(ours, "GPU-3")])
        await change_devices(tx, [])
        await add_devices(tx, [])
    assert await _stored(database, ours) == [moved]
    assert await _stored(database, other) == [gpu(other, "GPU-2")]
