"""What the world's nodes hold, are told and have to show, and what machines they are; see `tests.support.world`."""

from typing import Any, Final

from domain.acceptance import AttemptState, CheckState
from domain.commands import OPEN, CommandState
from domain.hardware_key import Field
from domain.remediation_run import RemediationState
from domain.xid_rules import XidRemedy
from tests.support.world_fleet import Rows, an_id

DURING: Final = (
    "[2020-01-01T00:00:00.5+00:00,)",
    "[2020-02-01T00:00:00+00:00,2100-01-01T00:00:00.120000+00:00)",
    "[2099-01-01T00:00:00.000001+00:00,2100-01-01T00:00:00+00:00)",
    "[2020-01-01T00:00:00+00:00,2020-01-02T00:00:00+00:00)",
    "empty",
)
"""Held now, held later, held once, and ended before it began."""
IMAGES: Final = ('registry/odd "name" 🚀:1', "debian:13", "sha256:0")


def hardware_key(number: int) -> dict[str, Any]:
    """Return a node's columns of what machine it is."""
    if number % 4 == 3:
        return {"hardware_key": None, "hardware_key_trusted": False, "hardware_evidence": [], "fingerprint": None}
    evidence = [
        {
            "field": field.value,
            "value": None if (number + which) % 3 == 0 else f'{field.value} "{number}" Zoë',
            "known": (number + which) % 3 > 0,
            "placeholder": (number + which) % 2 == 0,
            "matched": (None, True, False)[(number + which) % 3],
        }
        for which, field in enumerate(Field)
    ]
    return {
        "hardware_key": f"{number:064x}",
        "hardware_key_trusted": False,
        "hardware_evidence": evidence,
        "fingerprint": f"{number:032x}",
    }


def allocation_rows(nodes: Rows, base: int) -> Rows:
    """Return allocations of the first nodes, one for each time that something may be held."""
    return [
        {
            "id": an_id("alloc", base + 10 * number + which),
            "tenant_id": node["tenant_id"],
            "node_id": node["id"],
            "shard_id": None if which else 'shard "1"',
            "replica_id": f"replica-{which}" if which % 2 else None,
            "reservation_id": None,
            "memory_gb": None if which % 2 else 2**31 - 1,
            "cpu_cores": number if which % 2 else None,
            "power_w": (None, 0.1, 700.0, 1e20, -0.0)[which],
            "during": during,
            "request": {},
        }
        for number, node in enumerate(nodes[:3])
        for which, during in enumerate(DURING)
    ]


def booking_rows(allocations: Rows, devices: Rows, base: int) -> Rows:
    """Return bookings of each allocation's node's devices, of the node itself, and of a device that vanished."""
    rows: Rows = []
    for allocation in allocations:
        held = [device["id"] for device in devices if device["node_id"] == allocation["node_id"]]
        which = DURING.index(allocation["during"])
        # What is held at once is not the same: the database sees to it.
        for device_id in (held[which % len(held)], f"gone/{allocation['id']}"):
            rows.append(
                {
                    "id": an_id("bkg", base + len(rows)),
                    "tenant_id": allocation["tenant_id"],
                    "allocation_id": allocation["id"],
                    "node_id": allocation["node_id"],
                    "device_id": device_id,
                    "during": allocation["during"],
                }
            )
    return rows


def image_rows(nodes: Rows) -> Rows:
    """Return what the nodes have cached."""
    return [
        {
            "node_id": node["id"],
            "reference": IMAGES[which],
            "digest": f"sha256:{which}",
            "tenant_id": node["tenant_id"],
            "bytes": None if which else 2**63 - 1,
        }
        for number, node in enumerate(nodes)
        for which in range(number % 4)
        if which < len(IMAGES)
    ]


def command_rows(nodes: Rows, base: int) -> Rows:
    """Return commands of the first nodes, one in each state."""
    return [
        {
            "id": an_id("cmd", base + 10 * number + which),
            "tenant_id": node["tenant_id"],
            "node_id": node["id"],
            "sequence": which + 1,
            "idempotency_key": f'key "{number}" {which}',
            "kind": "diag.nvml" if which % 2 else "inventory.refresh",
            "payload": {"gpuCount": which} if which % 2 else {},
            "request": {},
            "state": state.value,
            "not_before": "2026-03-05T00:00:00.5+00:00" if which % 3 == 0 else None,
            "not_after": "2099-01-01T00:00:00+00:00",
            "expires_at": "2099-01-01T00:00:00+00:00",
            "issued_by": 'an "operator" 🚀',
            "request_id": an_id("req", base),
            "created_at": "2026-03-05T00:00:00.120000+00:00",
            "started_at": None if which < 2 else "2026-03-05T00:00:01+00:00",
            "finished_at": None if state in OPEN else "2026-03-05T00:00:02+00:00",
            "reason": None if which % 2 else "unsupported",
            "message": None if which % 2 else 'no "NVML" here',
            "result": {"passed": True, "failures": [None, 1.5, "9223372036854775807"]} if which % 2 else None,
        }
        for number, node in enumerate(nodes[:3])
        for which, state in enumerate(CommandState)
    ]


def acceptance_rows(nodes: Rows, commands: Rows) -> Rows:
    """Return attempts of the first nodes, one in each state, with as many checks as their number says."""
    ended = (AttemptState.PASSED, AttemptState.FAILED)
    return [
        {
            "node_id": node["id"],
            "attempt": which + 1,
            "tenant_id": node["tenant_id"],
            "state": state.value,
            "checks": [
                {
                    "kind": f'kind "{place}" 🚀',
                    "commandId": commands[place]["id"],
                    "state": list(CheckState)[place].value,
                    "reason": None if place % 2 else "Expired",
                }
                for place in range(which)
            ],
            "reason": None if which < 2 else f'diag.nvml:"{number}"',
            "started_at": None if which == 0 else "2026-03-05T00:00:01.5+00:00",
            "finished_at": "2026-03-05T00:00:02+00:00" if state in ended else None,
        }
        for number, node in enumerate(nodes[:6])
        for which, state in enumerate(list(AttemptState)[: 1 + number % 4])
    ]


def run_rows(nodes: Rows, base: int) -> Rows:
    """Return runs of remediation of the first nodes, one in each state."""
    remedies = (XidRemedy.REBOOT, XidRemedy.GPU_RESET)
    return [
        {
            "id": an_id("run", base + 10 * number + which),
            "tenant_id": node["tenant_id"],
            "node_id": node["id"],
            "remedy": remedies[which % 2].value,
            "device_id": "GPU-1" if which % 2 else None,
            "faults": [
                {"condition": "Xid79", "deviceId": None},
                {"condition": 'x"y 🚀', "deviceId": "GPU-1"},
            ][: which % 3],
            "boot_id": None if which % 2 else "b1",
            "attempt": which + 1,
            "state": state.value,
            "command_id": an_id("cmd", base + 10 * number) if which % 2 else None,
            "reason": None if which % 2 else "not-started",
            "started_at": "2026-03-05T00:00:01.5+00:00",
            "finished_at": None if state is RemediationState.RUNNING else "2026-03-05T00:00:02+00:00",
            "escalated_at": "2026-03-05T00:00:02.000001+00:00" if which == 3 else None,
        }
        for number, node in enumerate(nodes[:3])
        for which, state in enumerate(RemediationState)
    ]
