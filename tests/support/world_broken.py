"""Rows that no code of ours writes: what a field promises is not there, or belongs to another tenant."""

from collections.abc import Mapping
from typing import Any

from domain.events import (
    COMMAND_CHANGED,
    CONDITION_CHANGED,
    DEVICE_HEALTH_CHANGED,
    INVENTORY_CHANGED,
    POOL_PAUSED,
    REMEDIATION_STARTED,
)
from tests.support.world_fleet import (
    Rows,
    an_id,
    condition_rows,
    device_rows,
    health_rows,
    liveness_rows,
    node_rows,
    place_rows,
)
from tests.support.world_history import RECEIVED, event_rows, inventory_rows, snapshot_rows, stored_sections
from tests.support.world_holdings import (
    acceptance_rows,
    allocation_rows,
    booking_rows,
    command_rows,
    hardware_key,
    run_rows,
)


def broken_rows(tenant_id: str, base: int, head: int, theirs: Mapping[str, str]) -> dict[str, Rows]:
    """Return the rows by table; `theirs` are another tenant's ids."""
    sites, pools = place_rows(tenant_id, base)
    nodes = node_rows(tenant_id, base, 8, sites, pools)
    nodes[1]["provision_state"] = "elsewhere"
    nodes[2]["power"] = "ON"
    nodes[4]["agent_labels"] = {"a": None, "b": 1, "c": {"d": True}}
    nodes[5]["site_id"] = theirs["sites"]
    pools[1]["site_id"] = theirs["sites"]
    conditions = condition_rows(nodes)
    conditions[0]["status"] = "maybe"
    devices = device_rows(nodes)
    allocations = allocation_rows(nodes, base)
    bookings = booking_rows(allocations, devices, base)
    bookings[2]["allocation_id"] = theirs["allocations"]
    for number, node in enumerate(nodes):
        node.update(hardware_key(base + number))
    nodes[0]["hardware_evidence"] = [{"field": None}, {"known": True, "placeholder": None}]
    devices[0]["node_id"] = theirs["nodes"]
    devices[1]["parent_id"] = theirs["devices"]
    devices[2]["not_known"] = {"a": "who knows", "b": None}
    devices[3]["device_class"] = "toaster"
    devices[4]["attributes"] = [1, None]
    faults = health_rows(devices)
    faults[0]["source"] = "rumour"
    commands = command_rows(nodes, base)
    commands[0]["state"] = "lost"
    attempts = acceptance_rows(nodes, commands)
    attempts[1]["state"] = "given up"
    attempts[1]["checks"] = [{"kind": None}, {"kind": "x", "commandId": 1, "state": "lost"}, None]
    runs = run_rows(nodes, base)
    runs[1]["remedy"] = "prayer"
    runs[2]["faults"] = [{"condition": None}, {"deviceId": 1}]
    runs[3]["command_id"] = theirs["commands"]
    snapshots = snapshot_rows(nodes, base)
    snapshots[1]["sections"] = {**snapshots[1]["sections"], "os": None, "sound": "0" * 64}
    stored = stored_sections(nodes[:1])
    stored[0]["tenant_id"] = theirs["sites"]
    inventories = inventory_rows(nodes)
    del inventories[0]
    return {
        "sites": sites,
        "pools": pools,
        "nodes": nodes,
        "node_liveness": liveness_rows(nodes),
        "node_conditions": conditions,
        "devices": devices,
        "device_health": faults,
        "allocations": allocations,
        "bookings": bookings,
        "commands": commands,
        "acceptance_attempts": attempts,
        "remediation_runs": runs,
        "inventory_sections": stored,
        "inventory_snapshots": snapshots,
        "node_inventory": inventories,
        "events": _events(tenant_id, nodes, snapshots, devices, base, head, theirs),
    }


def _events(  # noqa: PLR0917 - what events speak of
    tenant_id: str, nodes: Rows, snapshots: Rows, devices: Rows, base: int, head: int, theirs: Mapping[str, str]
) -> Rows:
    sound = event_rows(tenant_id, nodes, snapshots, devices, base, head)
    change = {"type": "node.gpu.missing", "before": None, "after": None}
    payloads: list[tuple[str, Any]] = [
        (INVENTORY_CHANGED, {}),
        (INVENTORY_CHANGED, {"snapshotId": theirs["inventory_snapshots"], "sections": None, "changes": None}),
        (INVENTORY_CHANGED, {"snapshotId": "x", "digest": "d", "sections": [], "advisory": None, "changes": [change]}),
        (INVENTORY_CHANGED, {"snapshotId": "x", "changes": [{**change, "type": "node.gpu.sold", "deviceId": "x"}]}),
        ("node.gpu.missing", {"before": 1}),
        ("node.gpu.missing", {"type": "node.gpu.added", "deviceId": None, "snapshotId": None}),
        (CONDITION_CHANGED, {"condition": None, "status": "maybe", "noSchedule": None, "reason": "r"}),
        (CONDITION_CHANGED, {"condition": "x", "status": None}),
        (DEVICE_HEALTH_CHANGED, {"deviceId": theirs["devices"], "healthy": None, "source": "rumour", "end": "soon"}),
        (DEVICE_HEALTH_CHANGED, {"deviceId": None, "cause": 1, "reason": None, "source": None}),
        (COMMAND_CHANGED, {"commandId": theirs["commands"], "kind": None, "sequence": None, "state": "lost"}),
        (COMMAND_CHANGED, {"commandId": None, "kind": "x", "sequence": 1, "state": None}),
        (REMEDIATION_STARTED, {"runId": None, "remedy": "prayer", "causes": None, "attempt": None}),
        (POOL_PAUSED, {"poolId": "x", "nodes": None}),
        ("node.teleported", [1, {"a": None}]),
    ]
    rows = [
        {
            **sound[0],
            "position": sound[-1]["position"] + number,
            "id": an_id("evt", base + 1_000 + number),
            "node_id": theirs["nodes"],
            "type": type_,
            "payload": payload,
            "at": RECEIVED[0],
        }
        for number, (type_, payload) in enumerate(payloads, start=1)
    ]
    return [*sound, *rows]
