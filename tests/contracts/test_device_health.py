"""A faulty GPU from the report to what clients read, follow and are refused, and back."""

from typing import Any

from tests.support.server import RunningServer, applied, ingest, report
from tests.support.socket import open_socket

NODE = """
query ($id: ID!) {
  computeNode(id: $id) {
    unschedulableReasons
    conditions(status: TRUE) { type reason message noSchedule }
    allocations { degraded degradedReasons devices { id } }
    devices { nodes {
      id healthy bookable children { id healthy health { deviceId } }
      health { deviceId source cause reason message rule since }
    } }
  }
}
"""
FAULTS = """
subscription ($after: Cursor, $nodes: [ID!]) {
  deviceHealthChanged(after: $after, nodeIds: $nodes) {
    type nodeId deviceId healthy source cause reason message rule end device { healthy health { cause } }
  }
}
"""
ALLOCATE = """
mutation ($shard: ID!, $node: ID, $devices: [ID!], $count: Int) {
  allocate(input: {shardId: $shard, nodeId: $node, deviceIds: $devices, count: $count}) { devices { id } }
}
"""
CAPACITY = "{ fleetSummary { capacity { resource allocatable available } } }"
SPLIT = {"migMode": {"current": True, "pending": True}, "migInstances": [{"gi": 1, "ci": 0}]}


def _gpus(**faulty: dict[str, Any]) -> dict[str, Any]:
    health = {"rowRemap": {"pending": False, "failure": False}, "eccUncorrectable": {"volatile": 0, "aggregate": 3}}
    fine = {"health": health, "fabric": {"state": "completed", "status": "success", "health": "healthy"}}
    split: dict[str, dict[str, Any]] = {"three": SPLIT}
    gpus = [
        {"uuid": f"GPU-{name}", "pciBusId": f"00000000:{place}0:00.0", **fine, **split.get(name, {})}
        for place, name in enumerate(("one", "two", "three"), 1)
    ]
    named = {f"GPU-{name}": more for name, more in faulty.items()}
    return {"gpus": {"enumeration": "complete", "gpus": [{**gpu, **named.get(gpu["uuid"], {})} for gpu in gpus]}}


async def _refused(server: RunningServer, **asked: Any) -> str:  # noqa: ANN401 - any input
    (error,) = (await server.operator.send(ALLOCATE, shard="refused", **asked))["errors"]
    assert error["extensions"]["code"] == "CONFLICT"
    return str(error["message"])


async def _gpu_capacity(server: RunningServer) -> tuple[int, int]:
    found = (await server.operator.data(CAPACITY))["fleetSummary"]["capacity"]
    return next((each["allocatable"], each["available"]) for each in found if each["resource"] == "gpu")


async def test_a_faulty_gpu_is_told_kept_by_who_has_it_and_given_to_nobody_else(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    operator = server.operator
    node_id = await report(server.agent, "n1", _gpus())
    await operator.data(ALLOCATE, shard="holder", devices=["GPU-one"])
    assert await _gpu_capacity(server) == (2, 1)
    cursor = (await operator.data("{ feedCursor }"))["feedCursor"]
    pending = {"health": {"rowRemap": {"pending": True}}}
    unhealthy = {"fabric": {"state": "completed", "status": "success", "health": "unhealthy"}}
    async with open_socket(address, operator.token) as socket:
        await socket.subscribe(FAULTS, after=cursor, nodes=[node_id])
        await ingest(server.agent, node_id, _gpus(one=pending, two=unhealthy, three=pending))
        told = [(await socket.next())["deviceHealthChanged"] for _ in range(3)]
        await applied(server.agent, node_id)
        node = (await operator.data(NODE, id=node_id))["computeNode"]
        assert await _gpu_capacity(server) == (1, 0)
        two = await _refused(server, devices=["GPU-two"])
        part = await _refused(server, devices=["GPU-three/gi1/ci0"])
        some = await _refused(server, node=node_id, count=1)
        await ingest(server.agent, node_id, _gpus())
        ended = [(await socket.next())["deviceHealthChanged"] for _ in range(3)]
    devices = {device["id"]: device for device in node["devices"]["nodes"]}

    assert told[0] == {
        "type": "device.health.changed",
        "nodeId": node_id,
        "deviceId": "GPU-one",
        "healthy": False,
        "source": "INVENTORY",
        "cause": "RemapPending",
        "reason": "RowRemapPending",
        "message": "a row remap waits for a reset",
        "rule": "inventory/1",
        "end": None,
        "device": {"healthy": False, "health": [{"cause": "RemapPending"}]},
    }
    assert [(each["deviceId"], each["reason"]) for each in told[1:]] == [
        ("GPU-three", "RowRemapPending"),
        ("GPU-two", "NvlinkDegraded"),
    ]
    assert "RowRemapPending" not in node["unschedulableReasons"]
    assert [(each["type"], each["reason"], each["noSchedule"]) for each in node["conditions"]][-2:] == [
        ("NvlinkDegraded", "FabricUnhealthy", False),
        ("RowRemapPending", "RemapPending", False),
    ]
    assert node["allocations"] == [
        {"degraded": True, "degradedReasons": ["AtomUnhealthy: GPU-one"], "devices": [{"id": "GPU-one"}]}
    ]
    assert devices["GPU-two"]["health"][0]["message"] == "the fabric says of it: unhealthy"
    assert devices["GPU-three"]["children"] == [
        {"id": "GPU-three/gi1/ci0", "healthy": False, "health": [{"deviceId": "GPU-three"}]}
    ]
    assert two == "deviceIds.0: GPU-two is unhealthy (NvlinkDegraded)"
    assert part == "deviceIds.0: GPU-three/gi1/ci0 is unhealthy (RowRemapPending)"
    assert some.endswith("1 are held and 2 cannot be given: not bookable; unhealthy (NvlinkDegraded)")

    assert [(each["deviceId"], each["end"], each["healthy"]) for each in ended] == [
        ("GPU-one", "CLEARED", True),
        ("GPU-three", "CLEARED", True),
        ("GPU-two", "CLEARED", True),
    ]
    await applied(server.agent, node_id)
    node = (await operator.data(NODE, id=node_id))["computeNode"]
    assert all(device["healthy"] and device["health"] == [] for device in node["devices"]["nodes"])
    assert not any(each["degraded"] for each in node["allocations"])
    assert {"RowRemapPending", "NvlinkDegraded"}.isdisjoint(each["type"] for each in node["conditions"])
