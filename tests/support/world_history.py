"""The world's inventories, snapshots and events; see `tests.support.world`."""

import json
from typing import Any, Final

from domain import sections
from domain.commands import OPEN, CommandState
from domain.conditions import ConditionStatus
from domain.device_health import HealthEnd, HealthSource
from domain.diff import ChangeType
from domain.digest import inventory_digest, section_sha256
from domain.events import (
    COMMAND_CHANGED,
    CONDITION_CHANGED,
    DEVICE_HEALTH_CHANGED,
    INVENTORY_CHANGED,
    POOL_REMEDIATION,
    REMEDIATION,
    AxisChange,
)
from domain.node import Trust
from domain.sections import SECTION_NAMES
from tests.support.documents import Given, example
from tests.support.world_fleet import JSON, TIMES, Rows, an_id

RECEIVED: Final = (
    "2026-03-01T00:00:00+00:00",
    "2026-03-02T00:00:00.5+00:00",
    "2026-03-02T00:00:00.5+00:00",
    "2026-03-03T23:59:59.999999+00:00",
    "2026-03-04T00:00:00.000001+00:00",
    "2026-03-05T12:30:00.120000+00:00",
)
NOTHING_STORED: Final = section_sha256(b"never received")


def content_of(section: str, given: Given) -> bytes:
    """Return bytes as an agent might write them: in its own layout, with a field that this server does not know."""
    return json.dumps({**example(section, given), "fromTheFuture": [1, 2.5, None]}, indent=1).encode()


HASHES: Final = {given: {name: section_sha256(content_of(name, given)) for name in SECTION_NAMES} for given in Given}
SETS: Final[tuple[dict[str, str], ...]] = (
    HASHES[Given.FULL],
    HASHES[Given.LEAST],
    HASHES[Given.HOLLOW],
    {name: HASHES[list(Given)[number % 3]][name] for number, name in enumerate(SECTION_NAMES) if number % 4},
    {},
    {**HASHES[Given.FULL], "gpus": NOTHING_STORED},
)
"""Sets of sections as snapshots hold them; the last names bytes that were never stored."""


def stored_sections(nodes: Rows) -> Rows:
    """Return the bytes of the nodes' sections, and the documents decoded from them."""
    return [
        {
            "node_id": node["id"],
            "name": name,
            "sha256": HASHES[given][name],
            "tenant_id": node["tenant_id"],
            "content": "\\x" + content_of(name, given).hex(),
            "document": sections.as_json(sections.decode(name, content_of(name, given))),
            "received_at": TIMES[0],
        }
        for node in nodes
        for given in Given
        for name in SECTION_NAMES
    ]


def snapshot_rows(nodes: Rows, base: int) -> Rows:
    """Return six snapshots of the first node, fewer of those that follow, two of them received at once."""
    trusts = list(Trust)
    return [
        {
            "id": an_id("inv", base + 100 * number + which),
            "tenant_id": node["tenant_id"],
            "node_id": node["id"],
            "digest": inventory_digest(SETS[which]),
            "sections": SETS[which],
            "trust": trusts[(number + which) % len(trusts)],
            "received_at": RECEIVED[which],
        }
        for number, node in enumerate(nodes)
        for which in range(max(0, len(SETS) - 2 * number))
    ]


def inventory_rows(nodes: Rows) -> Rows:
    """Return inventories in every state, one after the other."""
    first, second = SETS[0], SETS[3]
    applied = {"applied": first, "applied_digest": inventory_digest(first), "applied_at": RECEIVED[3]}
    failed = {"failed": second, "failed_at": RECEIVED[4], "error": "section 'gpus' at gpus.0: \"no\"\n"}
    states: tuple[dict[str, Any], ...] = (
        {"reported": first, "reported_at": RECEIVED[2], **applied},
        {},
        {"reported": second, "reported_at": RECEIVED[5], **applied},
        {"reported": second, "reported_at": RECEIVED[5], "missing": ["gpus", "os"]},
        {"reported": first, "reported_at": RECEIVED[2], **applied, "applied_digest": "advisory:" + "0" * 64},
        {"reported": second, "reported_at": RECEIVED[5], **failed},
        {"reported": second, "reported_at": RECEIVED[5], **applied, **failed},
        {"reported": {}, "reported_at": TIMES[2]},
        {"reported": first, "reported_at": RECEIVED[2], **applied, **failed},
    )
    nothing = dict.fromkeys(
        ("reported", "reported_at", "applied", "applied_digest", "applied_at", "failed", "failed_at", "error")
    )
    return [
        {
            "node_id": node["id"],
            "tenant_id": node["tenant_id"],
            **nothing,
            "missing": [],
            **states[number % len(states)],
        }
        for number, node in enumerate(nodes)
    ]


def event_rows(  # noqa: PLR0917 - what events speak of
    tenant_id: str, nodes: Rows, snapshots: Rows, devices: Rows, base: int, position: int
) -> Rows:
    """Return events of every type about nodes of ours, of nobody, and of nodes that are not there."""
    about = [nodes[0]["id"], nodes[1]["id"], None, "node_00000000000000000000000000"]
    changes = [{"type": change.value, **_change(number)} for number, change in enumerate(ChangeType)]
    told: list[tuple[str, dict[str, Any]]] = [
        (INVENTORY_CHANGED, _applied(snapshots[0]["id"], changes, ["os", "gpus"], advisory=False)),
        (INVENTORY_CHANGED, _applied("inv_00000000000000000000000000", [], [], advisory=True)),
        *((change.value, {"snapshotId": snapshots[1]["id"], **_change(n)}) for n, change in enumerate(ChangeType)),
        *((CONDITION_CHANGED, _condition(status)) for status in ConditionStatus),
        *((DEVICE_HEALTH_CHANGED, _fault(devices[0]["id"], end)) for end in (None, *HealthEnd)),
        *((COMMAND_CHANGED, _command(an_id("cmd", base), state)) for state in CommandState),
        *((change.value, _axes(number)) for number, change in enumerate(AxisChange)),
        *((each, _remediation(an_id("run", base), n)) for n, each in enumerate(REMEDIATION)),
        *((each, {"poolId": an_id("pool", base), "nodes": 7, "turnedUnhealthy": 2}) for each in POOL_REMEDIATION),
        ("node.teleported", JSON),
        ('x"y 🚀', {}),
    ]
    return [
        {
            "position": position + number,
            "id": an_id("evt", base + number),
            "tenant_id": tenant_id,
            "node_id": about[number % len(about)],
            "type": type_,
            "payload": payload,
            "at": RECEIVED[number % len(RECEIVED)],
            "transaction": 100 + number,
        }
        for number, (type_, payload) in enumerate(told, start=1)
    ]


def _applied(snapshot_id: str, changes: Rows, names: list[str], *, advisory: bool) -> dict[str, Any]:
    digest = inventory_digest(SETS[0])
    return {"snapshotId": snapshot_id, "digest": digest, "sections": names, "advisory": advisory, "changes": changes}


def _command(command_id: str, state: CommandState) -> dict[str, Any]:
    told = {"commandId": command_id, "kind": "diag.nvml", "sequence": 1, "state": state.value}
    return told if state in OPEN else {**told, "reason": "deadline", "message": None, "by": 'an "agent" 🚀'}


def _axes(number: int) -> dict[str, Any]:
    axes = {name: bool(number >> bit & 1) for bit, name in enumerate(("cordoned", "draining", "drained"))}
    return {**axes, "maintenance": number == 1, "reason": (None, 'new "fans" 🚀')[number % 2], "by": None}


def _remediation(run_id: str, number: int) -> dict[str, Any]:
    told = {"runId": run_id, "remedy": "reboot", "causes": ["Xid79", 'x"y'][:number], "attempt": number}
    return {**told, "reason": "not-cleared" if number else None}


def _change(number: int) -> dict[str, Any]:
    values: tuple[Any, ...] = (None, 'text "q" 🚀', 7, 2.5, True, [], {}, JSON, [JSON, None], "9223372036854775807")
    return {
        "deviceId": None if number % 2 else f"GPU-{number}",
        "before": values[number % len(values)],
        "after": values[(number + 3) % len(values)],
    }


def _condition(status: ConditionStatus) -> dict[str, Any]:
    said = status is ConditionStatus.TRUE
    return {
        "condition": "Xid79",
        "status": status.value,
        "reason": "Because" if said else None,
        "message": None if said else "line\nline",
        "noSchedule": said,
    }


def _fault(device_id: str, end: HealthEnd | None) -> dict[str, Any]:
    return {
        "deviceId": device_id,
        "healthy": end is not None,
        "source": list(HealthSource)[0 if end is None else 1].value,
        "cause": "LinkInactive",
        "reason": "NvlinkDegraded",
        "message": None if end else 'line\n"quoted"',
        "rule": None if end else "inventory/1",
        "end": None if end is None else end.value,
    }
