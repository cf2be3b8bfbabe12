"""The world's sites, pools, nodes and devices, with every axis varied; see `tests.support.world`."""

from itertools import cycle
from typing import Any, Final

from domain.availability import Availability
from domain.conditions import ConditionStatus
from domain.device import DeviceClass, place_id
from domain.device_health import HealthSource
from domain.ids import DeviceId, NodeId, Prefix, format_id
from domain.node import NodeRole, Power, ProvisionState, Trust
from domain.pool import PoolAgent, PoolClass, Sharing, SiteKind

Rows = list[dict[str, Any]]

CONNECTED: Final = "2100-01-01T00:00:00.120000+00:00"
SILENT: Final = "2001-02-03T04:05:06+00:00"
TIMES: Final = ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05.1+00:00", "2026-01-02T03:04:05.123456+00:00")
HOSTNAMES: Final = (
    None,
    "same",
    "same",
    "Same",
    'it\'s "quoted"; --',
    "back\\slash\\",
    "Zoë-東京-🚀\u2028",
    "\x01\x1f\x7f\t\r\n\x85",
    "100%_done",
    "",
    None,
    "zz" * 100,
    "é",
    "e\u0301",
    "{}[],:",
)
JSON: Final[dict[str, Any]] = {
    "nested": {"list": [1, 2.5, "x", None, True, [], {}, [[{"a": "\u2028"}]]], "": {"": ""}},
    "big": 2**63 - 1,
    "small": -(2**63),
    "unsigned": 2**64 - 1,
    "floats": [0.1, 1e20, 1e-7, 1.5e300, -2.5, 79.65],
    "text": '"quoted" back\\slash \x01 Zoë 🚀',
    "zz": 1,
    "a": 2,
}
LABELS: Final = {"gpu.model": "H100", "zone": "eu-1", "empty": "", 'odd "key" 🚀': "\x01\n", "Z": "z", "a": "A"}

_NUMBERS: Final = (
    {"numa.nodes": "2"},
    {"numa.nodes": "-0.50"},
    {"numa.nodes": "mixed"},
    {"numa.nodes": "9" * 30},
    {"numa.nodes": "1e3"},
)


def an_id(prefix: Prefix, number: int) -> str:
    """Return an id that is the same in every run."""
    return format_id(prefix, 1_767_225_600_000 + number, number)


def place_rows(tenant_id: str, base: int) -> tuple[Rows, Rows]:
    """Return sites and pools, among them ones without nodes."""
    sites = [
        {"id": an_id("site", base + number), "tenant_id": tenant_id, "name": name, "iam_region": region, "kind": kind}
        for number, (kind, name, region) in enumerate(
            zip(SiteKind, ('Zürich "1"', "b\\c", "empty"), ("eu", "", "us-🚀"), strict=True)
        )
    ]
    pools = [
        {
            "id": an_id("pool", base + number),
            "tenant_id": tenant_id,
            "site_id": sites[number % 2]["id"],
            "name": f"pool {number}",
            "pool_class": kind,
            "gpu_model": None if number % 2 else "H100",
            "sharing": sharing,
            "agent": agent,
            "policy": JSON if number % 2 else {},
        }
        for number, (kind, sharing, agent) in enumerate(zip(PoolClass, Sharing, cycle(PoolAgent), strict=False))
    ]
    return sites, pools


def node_rows(tenant_id: str, base: int, count: int, sites: Rows, pools: Rows) -> Rows:
    """Return nodes; those of equal number are alike in every tenant, identity and names included."""
    provision, powers, roles, trusts = (list(each) for each in (ProvisionState, Power, NodeRole, Trust))
    return [
        {
            "id": an_id("node", base + number),
            "tenant_id": tenant_id,
            "identity_key": f"identity-{number}" + (" '100%'\\ Zoë" if number % 4 == 3 else ""),
            "hostname": HOSTNAMES[number % len(HOSTNAMES)],
            "display_name": (None, "Rack 1_%", 'Zoë\'s "rack"\n', "")[number % 4],
            "management_address": None if number % 3 else "10.0.0.1",
            "site_id": sites[number % 2]["id"] if number % 5 else None,
            "pool_id": pools[number % 3]["id"] if number % 4 else None,
            "provision_state": provision[number % len(provision)],
            "maintenance": number in {1, 4},
            "maintenance_reason": 'new "fans" 🚀' if number == 4 else None,
            "maintenance_by": "an operator" if number == 4 else None,
            "maintenance_since": TIMES[2] if number == 4 else None,
            "cordoned": number in {1, 7},
            "draining": number in {1, 8},
            "drained": number == 8,
            "power": powers[number % len(powers)],
            "role": roles[number % len(roles)],
            "trust": trusts[number % len(trusts)],
            "generation": number * 1000,
            "observed_generation": 2**31 - 1 - number,
            "units": [[], [{"kind": "iommu", "version": None}, {"kind": "nvidia-driver", "version": 'é "580"'}]][
                number % 2
            ],
            "agent_labels": {} if number % 4 == 0 else {**LABELS, "only.agent": "1"},
            "operator_labels": {"zone": "by operator", "a": "ä"} if number % 2 else {},
            "inventory_labels": {"gpu.model": "by inventory", "zone": "too"}
            if number % 3 == 1
            else _NUMBERS[number % 5],
            "system_labels": {"zone": "by system", "fleet/system": ""} if number % 5 == 1 else {},
            "no_schedule_reasons": [[], ["Xid79"], ['a "b"', "c,d {}", "NULL"]][number % 3],
            "agent_version": None if number % 2 else "1.2.3",
            "protocol": None if number % 3 else "1",
            "features": [[], ["x"], ["", "é", "\\"]][number % 3],
            "boot_id": None if number % 2 else f"boot-{number}",
        }
        for number in range(count)
    ]


def liveness_rows(nodes: Rows) -> Rows:
    """Return the signs of life: most are connected, some silent, lost, never heard, or without a row."""
    seen = {2: SILENT, 3: None, 5: SILENT, 9: SILENT}
    # Of the last it was said before it was heard of again.
    away = {2: "unreachable", 5: "lost", 7: "lost"}
    skews = {0: 0.0, 1: -7200.125, 2: 1e9}
    return [
        {
            "node_id": node["id"],
            "tenant_id": node["tenant_id"],
            "last_seen_at": seen.get(number, CONNECTED),
            "away": away.get(number),
            "clock_skew_seconds": skews.get(number),
        }
        for number, node in enumerate(nodes)
        if number != 6
    ]


def certificate_rows(nodes: Rows) -> Rows:
    """Return certificates of every other node."""
    return [
        {
            "node_id": node["id"],
            "tenant_id": node["tenant_id"],
            "serial": f"{number:x}f00d",
            "not_before": TIMES[number % 3],
            "not_after": CONNECTED,
        }
        for number, node in enumerate(nodes[::2])
    ]


def condition_rows(nodes: Rows) -> Rows:
    """Return up to three conditions of a node, of every status."""
    types = ("Xid79", "InventoryDegraded", 'odd "Type" 🚀')
    return [
        {
            "node_id": node["id"],
            "type": types[which],
            "tenant_id": node["tenant_id"],
            "status": list(ConditionStatus)[(number + which) % 3],
            "reason": None if which else 'Because \\ "so"',
            "message": None if (number + which) % 2 else "line\nline \x1f",
            "no_schedule": which == 0,
            "since": TIMES[which],
        }
        for number, node in enumerate(nodes)
        for which in range(number % 4)
    ]


def device_rows(nodes: Rows) -> Rows:
    """Return devices of every class: GPUs with partitions, chains of parents, and parents that are not there."""
    rows: Rows = []
    for number, node in enumerate(nodes[:7]):
        node_id = NodeId(node["id"])
        ids = [_device_id(node_id, kind, number) for kind in DeviceClass]
        parents = {1: ids[0], 2: ids[1], 4: ids[3], 5: ids[5] if number == 1 else None, 6: "nothing"}
        for which, kind in enumerate(list(DeviceClass)[: 7 - number]):
            rows.append(_device(node, ids[which], kind, parents.get(which), number + which))
    return rows


def health_rows(devices: Rows) -> Rows:
    """Return up to three faults of a device, of every source, some raised at once."""
    return [
        {
            "device_id": device["id"],
            "source": list(HealthSource)[(number + which) % 3],
            "cause": ("Xid79", 'odd "Cause" 🚀', "")[which],
            "tenant_id": device["tenant_id"],
            "node_id": device["node_id"],
            "reason": "NvlinkDegraded" if which else 'Because \\ "so"',
            "message": None if (number + which) % 2 else "line\nline \x1f",
            "rule": None if which else "inventory/1",
            "since": TIMES[0 if which else 1],
        }
        for number, device in enumerate(devices)
        for which in range(number % 4)
    ]


def _device_id(node_id: NodeId, kind: DeviceClass, number: int) -> DeviceId:
    odd = DeviceId(f'GPU-{node_id[-4:]}-"{number}"/Zoë')
    return odd if kind is DeviceClass.GPU else place_id(node_id, kind, "0000:18:00.0")


def _device(node: dict[str, Any], device_id: str, kind: str, parent: str | None, number: int) -> dict[str, Any]:
    known = bool(number % 3)
    return {
        "id": device_id,
        "tenant_id": node["tenant_id"],
        "node_id": node["id"],
        "device_class": kind,
        "parent_id": parent,
        "bookable": number % 2 == 0,
        "healthy": number % 3 != 0,
        "missing": number % 4 == 0,
        "partition_pending": number % 5 == 0,
        "gpu_product": "NVIDIA H100 80GB HBM3" if known else None,
        "gpu_model": "H100" if known else None,
        "vram_gib": (79.65, 80.0, None, 1e20, 0.1, -0.0, 1e-9, 1.7976931348623157e308)[number % 8],
        "index": number if known else None,
        "pci_bus_id": "00000000:18:00.0" if known else None,
        "numa_node": 2**31 - 1 if known else None,
        "architecture": "Hopper" if known else None,
        "compute_capability": "9.0" if known else None,
        "driver_version": "580.105.08" if known else None,
        "mig_capable": (None, True, False)[number % 3],
        "nvlink_peers": [[], ["a", 'b "c" 🚀']][number % 2],
        "fabric_cluster": None if known else "00000000-0000-0000-0000-000000000000",
        "fabric_clique": None if known else "0",
        "attributes": (JSON, {}, {"serial": None})[number % 3],
        "not_known": {} if known else {f"fact.{why} Zoë": why for why in Availability},
    }
