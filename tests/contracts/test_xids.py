"""Faults of a kernel log from the status report to what clients read, follow and are refused, and to their end."""

import asyncio
from typing import Any

from db.database import Database
from domain.fault_intake import FAULTS_MAX
from reconcilers.faults import faults
from reconcilers.remediation import remediation
from tests.support.server import RunningServer, applied, hello, ingest, report
from tests.support.socket import open_socket
from web.app import utc_now

STATUS = """
mutation ($entries: [StatusInput!]!) {
  reportStatus(entries: $entries) { ignoredConditions error { code message } }
}
"""
NODE = """
query ($id: ID!) {
  computeNode(id: $id) {
    schedulable noScheduleReasons bootId
    conditions(status: TRUE) { type reason message noSchedule }
    faults {
      kind code deviceId pci mig bootId sequence count message policy scope rule cause causedBy condition remedy
      end note
    }
    allocations { degradedReasons }
    devices { nodes { id healthy health { deviceId source cause reason message rule } } }
  }
}
"""
FOLLOW = """
subscription ($after: Cursor) {
  events(after: $after, filter: {
    type: ["node.fault.recorded", "device.health.changed", "allocation.degraded", "allocation.recovered"]
  }) {
    type
    ... on OtherEvent { payload }
    ... on NodeFaultRecorded { faultKind code gpuId policy rule cause }
    ... on DeviceHealthChanged { deviceId healthy source cause end }
  }
}
"""
CLEAR = 'mutation ($id: ID!) { clearDeviceHealth(deviceId: $id, reason: "looked at") { id healthy health { cause } } }'
CLEAR_NODE = """
mutation ($id: ID!) { clearNodeFaults(id: $id) { noScheduleReasons conditions(status: TRUE) { type } } }
"""
QUARANTINE = """
mutation ($id: ID!, $reason: String!) {
  quarantineDevice(deviceId: $id, reason: $reason) { healthy health { source cause reason message rule } }
}
"""
ALLOCATE = """
mutation ($device: ID!) { allocate(input: {shardId: "holder", deviceIds: [$device]}) { allocation { id } } }
"""
SITE = 'mutation { createSite(input: {name: "s", iamRegion: "eu-1"}) { id } }'
POOL = """
mutation ($site: ID!, $policy: JSON!) {
  createPool(input: {
    name: "p", siteId: $site, class: METAL_HOST, sharing: MIG, policy: $policy
  }) { id }
}
"""
SPLIT = {"migMode": {"current": True, "pending": True}, "migInstances": [{"gi": 1, "ci": 0}, {"gi": 2, "ci": 0}]}


def _gpus(*names: str) -> dict[str, Any]:
    gpus = [
        {"uuid": f"GPU-{name}", "pciBusId": f"00000000:{place}0:00.0", **(SPLIT if name == "split" else {})}
        for place, name in enumerate(names, 1)
    ]
    return {"gpus": {"enumeration": "complete", "gpus": gpus}}


async def _node(server: RunningServer, identity: str = "n1", *names: str) -> str:
    await server.agent.data(
        'mutation ($key: String!) { hello(input: {identityKey: $key, bootId: "boot-1"}) { nodeId } }', key=identity
    )
    return await report(server.agent, identity, _gpus(*(names or ("one", "two"))))


async def _tell(server: RunningServer, node_id: str, *xids: dict[str, Any]) -> None:
    entry = {"nodeId": node_id, "xids": [{"bootId": "boot-1", "message": "", **xid} for xid in xids]}
    (slot,) = (await server.agent.data(STATUS, entries=[entry]))["reportStatus"]
    assert slot["error"] is None, slot


def _xid(code: int, sequence: int, place: int = 1, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"code": code, "address": f"0000:{place}0:00", "sequence": str(sequence), **more}


async def _read(server: RunningServer, node_id: str) -> dict[str, Any]:
    node: dict[str, Any] = (await server.operator.data(NODE, id=node_id))["computeNode"]
    return node | {"devices": {device["id"]: device for device in node["devices"]["nodes"]}}


async def test_an_xid_48_quarantines_its_gpu_at_once_and_no_repetition_undoes_its_clearing(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    node_id = await _node(server)
    await server.operator.data(ALLOCATE, device="GPU-one")
    start = (await server.operator.data("{ feedCursor }"))["feedCursor"]
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(FOLLOW, after=start)
        await _tell(server, node_id, _xid(48, 7, message="An uncorrectable double bit error"))
        told = [(await socket.next())["events"] for _ in range(3)]
        node = await _read(server, node_id)
        await _tell(server, node_id, _xid(48, 7))
        cleared = (await server.operator.data(CLEAR, id="GPU-one"))["clearDeviceHealth"]
        await _tell(server, node_id, _xid(48, 7))
        ended, recovered = [(await socket.next())["events"] for _ in range(2)]
        again = await _read(server, node_id)
        await _tell(server, node_id, _xid(48, 9))
        back = [(await socket.next())["events"] for _ in range(2)]
    assert told[0] == {
        "type": "node.fault.recorded",
        "faultKind": "XID",
        "code": 48,
        "gpuId": "GPU-one",
        "policy": "QUARANTINE",
        "rule": "xid.48/1",
        "cause": "Xid48",
    }
    degraded = {each["type"]: each["payload"]["degradedReasons"] for each in (told[2], recovered)}
    assert degraded == {"allocation.degraded": ["AtomUnhealthy: GPU-one"], "allocation.recovered": []}
    assert told[1]["deviceId"] == "GPU-one"
    assert (told[1]["source"], told[1]["healthy"], told[1]["end"]) == ("XID", False, None)
    assert node["devices"]["GPU-one"]["health"] == [
        {
            "deviceId": "GPU-one",
            "source": "XID",
            "cause": "Xid48",
            "reason": "Xid48",
            "message": "An uncorrectable double bit error",
            "rule": "xid.48/1",
        }
    ]
    assert node["devices"]["GPU-two"]["healthy"]
    assert node["noScheduleReasons"] == []
    assert [each["type"] for each in node["conditions"]] == ["Xid48"]
    assert node["allocations"] == [{"degradedReasons": ["AtomUnhealthy: GPU-one"]}]
    assert cleared == {"id": "GPU-one", "healthy": True, "health": []}
    assert (ended["healthy"], ended["end"]) == (True, "CLEARED")
    assert again["devices"]["GPU-one"]["healthy"]
    assert again["conditions"] == []
    assert again["faults"][0]["end"] == "CLEARED"
    assert "looked at" in again["faults"][0]["note"]
    assert [each["type"] for each in back] == ["node.fault.recorded", "device.health.changed"]


async def test_an_xid_79_keeps_work_off_its_node_until_it_is_cleared(server: RunningServer) -> None:
    node_id = await _node(server)
    await _tell(server, node_id, _xid(79, 3, 2))
    node = await _read(server, node_id)
    assert node["noScheduleReasons"] == ["Xid79"]
    assert not node["schedulable"]
    (condition,) = node["conditions"]
    assert (condition["type"], condition["reason"], condition["noSchedule"]) == ("Xid79", "Xid79", True)
    assert condition["message"].startswith("GPU-two: ")
    assert node["devices"]["GPU-two"]["healthy"]
    await server.operator.data(CLEAR, id="GPU-two")
    node = await _read(server, node_id)
    assert (node["noScheduleReasons"], node["conditions"]) == ([], [])


async def test_application_faults_and_consequences_are_events_only(server: RunningServer) -> None:
    node_id = await _node(server)
    await _tell(
        server,
        node_id,
        _xid(13, 1, count=16),
        _xid(31, 2),
        _xid(43, 3),
        _xid(45, 4, causedBy=79),
        _xid(94, 5),
        _xid(100000, 6),
        _xid(20034, 7, kind="SXID", isFatal=True),
    )
    node = await _read(server, node_id)
    assert (node["conditions"], node["noScheduleReasons"]) == ([], [])
    assert all(device["healthy"] for device in node["devices"].values())
    faults = {fault["code"]: fault for fault in node["faults"]}
    assert {code: fault["policy"] for code, fault in faults.items()} == {
        13: "EVENT",
        31: "EVENT",
        43: "EVENT",
        45: "EVENT",
        94: "EVENT",
        100000: "UNKNOWN",
        20034: "EVENT",
    }
    assert faults[13]["count"] == "16"
    assert (faults[45]["causedBy"], faults[45]["rule"]) == ("Xid79", "xid.consequence/1")
    assert (faults[20034]["scope"], faults[20034]["deviceId"]) == ("SWITCH", None)


async def test_the_last_value_of_xid_154_decides_and_clears_nothing_else(server: RunningServer) -> None:
    node_id = await _node(server)
    change = "GPU recovery action changed from 0x{:x} (a) to 0x{:x} (b)".format
    await _tell(server, node_id, _xid(48, 1), _xid(154, 2, message=change(0, 1)))
    causes = {row["cause"] for row in (await _read(server, node_id))["devices"]["GPU-one"]["health"]}
    await _tell(server, node_id, _xid(154, 3, message=change(1, 2)))
    worse = await _read(server, node_id)
    await _tell(server, node_id, _xid(154, 4, message=change(2, 0)))
    better = await _read(server, node_id)
    assert causes == {"Xid48", "Xid154"}
    assert worse["noScheduleReasons"] == ["Xid154"]
    assert [row["cause"] for row in better["devices"]["GPU-one"]["health"]] == ["Xid48"]
    assert better["noScheduleReasons"] == []
    assert {fault["code"]: fault["end"] for fault in better["faults"]} == {48: None, 154: "RECOVERED"}


async def test_a_condition_that_names_an_xid_is_the_same_fault_in_fewer_words(server: RunningServer) -> None:
    node_id = await _node(server)
    condition = {"type": "Xid48", "deviceId": "GPU-two", "message": "DBE"}
    line = {"type": "Xid46", "message": "NVRM: Xid (PCI:0000:10:00): 46, stopped"}
    over = {"type": "Xid79", "status": "FALSE", "deviceId": "GPU-one"}
    entry = {"nodeId": node_id, "conditions": [condition, line, over, {"type": "Unheard"}]}
    (slot,) = (await server.agent.data(STATUS, entries=[entry]))["reportStatus"]
    node = await _read(server, node_id)
    assert slot == {"ignoredConditions": ["Unheard"], "error": None}
    assert {id_: [row["cause"] for row in each["health"]] for id_, each in node["devices"].items()} == {
        "GPU-one": ["Xid46"],
        "GPU-two": ["Xid48"],
    }
    assert {fault["pci"] for fault in node["faults"]} == {"00000000:10:00.0", "00000000:20:00.0"}


async def test_faults_of_another_boot_are_history(server: RunningServer) -> None:
    node_id = await _node(server)
    await _tell(server, node_id, _xid(48, 1, bootId="boot-0"), _xid(79, 2, bootId="boot-0"))
    node = await _read(server, node_id)
    assert (node["faults"], node["conditions"]) == ([], [])


async def test_a_fault_of_an_application_touches_its_mig_instance_where_a_pool_holds_it_against_it(
    server: RunningServer,
) -> None:
    node_id = await _node(server, "n1", "split", "two")
    site = (await server.operator.data(SITE))["createSite"]["id"]
    pool = (await server.operator.data(POOL, site=site, policy={"xids": {"31": "quarantine"}}))["createPool"]["id"]
    await server.operator.data(
        "mutation ($n: ID!, $p: ID!) { assignPool(id: $n, poolId: $p) { id } }", n=node_id, p=pool
    )
    await applied(server.agent, node_id)
    await _tell(server, node_id, _xid(31, 1, gi=1, ci=0), _xid(48, 2, 2, gi=1, ci=0))
    devices = (await _read(server, node_id))["devices"]
    healthy = {id_: each["healthy"] for id_, each in devices.items() if "GPU" in id_}
    assert healthy == {
        "GPU-split": True,
        "GPU-split/gi1/ci0": False,
        "GPU-split/gi2/ci0": True,
        "GPU-two": False,
    }


async def test_a_gpu_that_nobody_could_place_is_found_and_a_fault_ends_with_its_card(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await _tell(server, node_id, _xid(48, 1, 1, bootId=None), _xid(46, 2, 2, bootId=None))
    await _tell(server, node_id, {"code": 48, "address": "", "sequence": "3", "bootId": None})
    await _tell(server, node_id, {"code": 48, "address": "", "sequence": "4", "bootId": None})
    node = await _read(server, node_id)
    assert [fault["deviceId"] for fault in node["faults"]] == [None] * 4
    await ingest(server.agent, node_id, _gpus("one", "two"))
    await applied(server.agent, node_id)
    reconciler = faults(database, utc_now)
    await reconciler.activate()
    found = await _read(server, node_id)
    assert not found["devices"]["GPU-one"]["healthy"]
    await ingest(server.agent, node_id, _gpus("new", "two"))
    await applied(server.agent, node_id)
    await reconciler.activate()
    assert (await reconciler.activate()).done == 0
    left = await _read(server, node_id)
    assert {fault["deviceId"]: fault["end"] for fault in left["faults"] if fault["deviceId"]} == {
        "GPU-one": "REPLACED",
        "GPU-two": None,
    }
    assert left["devices"]["GPU-new"]["healthy"]


async def test_an_operator_quarantines_a_device_and_clears_it(server: RunningServer) -> None:
    await _node(server)
    for reason in ("smells of smoke", "still smells"):
        held = (await server.operator.data(QUARANTINE, id="GPU-one", reason=reason))["quarantineDevice"]
        assert held["healthy"] is False
        assert [(row["source"], row["cause"], row["reason"], row["rule"]) for row in held["health"]] == [
            ("OPERATOR", "Quarantined", reason, None)
        ]
    assert (await server.operator.data(CLEAR, id="GPU-one"))["clearDeviceHealth"]["healthy"]
    for mutation in (CLEAR, QUARANTINE):
        (error,) = (await server.stranger.send(mutation, id="GPU-one", reason="mine"))["errors"]
        assert error["extensions"]["code"] in {"NOT_FOUND", "FORBIDDEN"}


async def test_a_tenants_machine_reports_no_faults(server: RunningServer) -> None:
    node_id = await _node(server)
    await server.operator.data("mutation ($id: ID!) { setTrust(id: $id, trust: TENANT_CONTROLLED) { id } }", id=node_id)
    await _tell(server, node_id, _xid(48, 1), _xid(79, 2))
    node = await _read(server, node_id)
    assert (node["faults"], node["conditions"]) == ([], [])


async def test_a_fault_that_is_wrong_is_refused_alone_with_its_place(server: RunningServer) -> None:
    node_id = await _node(server)
    for wrong, place in (
        ({"code": -1}, "xids.1.code"),
        ({"ci": 1}, "xids.1.ci"),
        ({"count": 0}, "xids.1.count"),
        ({"sequence": "-1"}, "xids.1.sequence"),
        ({"message": "x" * 1001}, "xids.1.message"),
        ({"address": "\0"}, "xids.1.address"),
        ({"deviceId": ""}, "xids.1.deviceId"),
    ):
        entry = {"nodeId": node_id, "xids": [_xid(48, 1, message=""), {**_xid(13, 1, message=""), **wrong}]}
        (slot,) = (await server.agent.data(STATUS, entries=[entry]))["reportStatus"]
        assert slot["error"]["code"] == "INVALID_INPUT"
        assert slot["error"]["message"].startswith(place)
    assert (await _read(server, node_id))["faults"] == []


async def test_an_inventory_lifts_nothing_of_what_a_kernel_log_told(server: RunningServer) -> None:
    node_id = await _node(server)
    drain = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    await _tell(server, node_id, _xid(154, 1, message=drain), _xid(48, 2, 2))
    for names in (("one",), ("one", "two")):
        await ingest(server.agent, node_id, _gpus(*names))
        await applied(server.agent, node_id)
        node = await _read(server, node_id)
        assert node["noScheduleReasons"] == ["Xid154"]
        assert not any(device["healthy"] for name, device in node["devices"].items() if "GPU" in name)


async def test_an_operator_clears_a_node_of_what_no_device_of_it_has(server: RunningServer) -> None:
    node_id = await _node(server)
    await _tell(server, node_id, _xid(79, 1, 7), _xid(54, 2, 8))
    assert (await _read(server, node_id))["noScheduleReasons"] == ["Xid79"]
    cleared = (await server.operator.data(CLEAR_NODE, id=node_id))["clearNodeFaults"]
    assert cleared == {"noScheduleReasons": [], "conditions": []}
    (error,) = (await server.stranger.send(CLEAR_NODE, id=node_id))["errors"]
    assert error["extensions"]["code"] == "NOT_FOUND"


async def test_the_boot_that_a_tenants_machine_names_ends_nothing(database: Database, server: RunningServer) -> None:
    node_id = await _node(server)
    await _tell(server, node_id, _xid(48, 1))
    trust = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { bootId } }"
    await server.operator.data(trust, id=node_id, trust="TENANT_CONTROLLED")
    await hello(server.agent, "n1", bootId="made-up", agentVersion="9.9.9")
    taken = (await server.operator.data(trust, id=node_id, trust="PLATFORM"))["setTrust"]
    assert taken == {"bootId": None}
    await remediation(database, utc_now).activate()
    assert not (await _read(server, node_id))["devices"]["GPU-one"]["healthy"]


async def test_a_boot_that_is_back_tells_anew_what_a_reboot_seemed_to_end(
    database: Database, server: RunningServer
) -> None:
    node_id = await _node(server)
    await _tell(server, node_id, _xid(79, 1))
    await hello(server.agent, "n1", bootId="boot-of-another-machine")
    await remediation(database, utc_now).activate()
    assert (await _read(server, node_id))["noScheduleReasons"] == []
    await hello(server.agent, "n1", bootId="boot-1")
    await _tell(server, node_id, _xid(79, 1))
    assert (await _read(server, node_id))["noScheduleReasons"] == ["Xid79"]


async def test_reports_of_many_nodes_and_a_look_at_their_faults_wait_for_each_other_in_one_order(
    database: Database, server: RunningServer
) -> None:
    nodes = [await _node(server, f"n{number}", f"gpu{number}") for number in range(6)]
    look = faults(database, utc_now)

    async def report_all(sequence: int) -> None:
        entries = [
            {
                "nodeId": node_id,
                "observedGeneration": 1 - sequence % 2,
                **({"xids": [_xid(48, sequence, bootId="boot-1", message="")]} if place % 2 else {}),
            }
            for place, node_id in enumerate(reversed(nodes))
        ]
        slots = (await server.agent.data(STATUS, entries=entries))["reportStatus"]
        assert [slot["error"] for slot in slots] == [None] * len(nodes)

    for sequence in range(1, 6):
        await asyncio.gather(report_all(sequence), look.activate(), report_all(sequence + 10), look.activate())


async def test_a_boot_keeps_a_bounded_number_of_faults_and_all_that_hold(server: RunningServer) -> None:
    node_id = await _node(server)
    for start in range(0, FAULTS_MAX + 256, 256):
        told = [_xid(1000 + number, number + 1) for number in range(start, start + 256)]
        await _tell(server, node_id, *told)
    await _tell(
        server, node_id, *({"code": 79, "address": "", "sequence": str(9999 + number)} for number in range(200))
    )
    faults_now = (await _read(server, node_id))["faults"]
    assert len(faults_now) == FAULTS_MAX + 1
    assert [fault["code"] for fault in faults_now if fault["condition"]] == [79]
