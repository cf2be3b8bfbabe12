"""Rules 2 to 6 and 9 in plain Python: what a fleet of a few nodes must look like after every step."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.support.walk.hardware import DRIVER, Card, Report

SLOTS: Final = {"TIMESLICE": 4, "MPS": 10}
ATOMS: Final = {"gpu", "gpu.mig", "gpu.slot", "nic.vf", "node"}
OF_GPUS: Final = {"gpu", "gpu.mig", "gpu.slot"}
PRODUCTS: Final = {
    "H100": "H100-SXM5-80GB",
    "A100": "A100-SXM4-80GB",
    "other": "MADE-UP-9000",
    "mixed": "mixed",
}
LABEL_SOURCES: Final = ("AGENT", "OPERATOR", "INVENTORY", "SYSTEM")
"""Each covers those before it."""
CONTROLLED: Final = "TENANT_CONTROLLED"
CONDITIONS: Final = {"InventoryDegraded", "GpuModelUnknown", "DuplicateIdentity"}
MODELLED: Final = {"GpuModelUnknown", "DuplicateIdentity"}
"""Reasons that keep work off a node and that the model knows of; others are taken as they are."""


@dataclass(frozen=True)
class Row:
    """A device."""

    kind: str
    parent: str | None = None
    bookable: bool = False
    healthy: bool = True
    missing: bool = False
    pending: bool = False


@dataclass
class Pool:
    """How its nodes are divided."""

    metal: bool
    sharing: str = "EXCLUSIVE"
    replicas: int | None = None

    @property
    def slots(self) -> int:
        """Slots per GPU."""
        return (self.replicas or SLOTS[self.sharing]) if self.sharing in SLOTS else 0


@dataclass(frozen=True)
class Booking:
    """Devices that a shard holds, now and not for long or only later, each with the node that had it last."""

    places: dict[str, str]
    later: bool


@dataclass
class Node:
    """What is known of a node: what the platform believes of its hardware, and what follows from that."""

    id: str
    pool: str | None = None
    trust: str = "PLATFORM"
    last: Report | None = None
    """The last set that was taken, by whosever word."""
    advisory: bool = False
    snapshots: int = 0
    cards: dict[str, Card] = field(default_factory=dict)
    contested: set[str] = field(default_factory=set)
    """GPUs that it reported and another node has."""
    ports: dict[str, int] = field(default_factory=dict)
    disks: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    rows: dict[str, Row] = field(default_factory=dict)
    conditions: dict[str, bool] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in LABEL_SOURCES})

    @property
    def is_planned(self) -> bool:
        """Whether its devices follow from what it reported."""
        return self.last is not None and not self.advisory and self.trust != CONTROLLED

    def effective_labels(self) -> dict[str, tuple[str, str]]:
        """Return what holds of each key, and whose word it is."""
        found: dict[str, tuple[str, str]] = {}
        for source in LABEL_SOURCES:
            found |= {key: (value, source) for key, value in self.labels[source].items()}
        return found


@dataclass
class Fleet:
    """All of it."""

    nodes: dict[str, Node]
    pools: dict[str, Pool]
    bookings: dict[str, Booking] = field(default_factory=dict)

    def take(self, node: Node, report: Report) -> None:
        """Take a report: nothing when it is the last one again, history only by a tenant's word."""
        if report.same(node.last):
            return
        node.last = report
        node.snapshots += 1
        node.advisory = node.trust == CONTROLLED
        self.settle()

    def settle(self) -> None:
        """Bring every node to what its report, its pool and its bookings ask for, until nothing changes any more."""
        while True:
            before = {name: dict(node.rows) for name, node in self.nodes.items()}
            for node in self.nodes.values():
                if node.is_planned:
                    self._plan(node)
            self._follow()
            if before == {name: node.rows for name, node in self.nodes.items()}:
                return

    def _follow(self) -> None:
        """What is booked is where its hardware is."""
        for booking in self.bookings.values():
            for device in booking.places:
                node = self.node_of(device.split("/")[0])
                booking.places[device] = node.id if node is not None else booking.places[device]

    # What a report says of hardware.

    def _plan(self, node: Node) -> None:
        report = node.last
        assert report is not None
        theirs = {uuid for other in self._others(node) for uuid in other.rows}
        if report.says("gpus"):
            listed = {uuid: card for uuid, card in report.cards.items() if uuid not in theirs}
            node.cards = listed if report.enumeration == "complete" else {**node.cards, **listed}
        if report.says("nics"):
            node.ports = {} if report.functions is None else {report.port: report.functions}
        if report.says("disks"):
            node.disks = report.disks
        if report.says("images"):
            node.images = report.images
        node.rows = self._held(node, self._divided(node))
        in_full = report.says("gpus") and report.enumeration == "complete"
        shown = set(report.cards) if report.says("gpus") else set()
        node.contested = (shown if in_full else shown | node.contested) & theirs
        self._judge(node, report)
        self._label(node, report)

    def _others(self, node: Node) -> Iterator[Node]:
        return (other for other in self.nodes.values() if other is not node)

    def _judge(self, node: Node, report: Report) -> None:
        said: dict[str, bool] = {}
        complete = report.enumeration == "complete"
        if report.says("gpus"):
            said["InventoryDegraded"] = not complete
            unknown = any(card.family == "other" for card in report.cards.values())
            if unknown or complete:
                said["GpuModelUnknown"] = unknown
        said["DuplicateIdentity"] = bool(node.contested)
        node.conditions |= {name: holds for name, holds in said.items() if holds or name in node.conditions}

    def _label(self, node: Node, report: Report) -> None:
        labels = node.labels["INVENTORY"]
        if report.says("os"):
            labels["os.kernel"] = report.kernel
        if not report.says("gpus") or report.enumeration != "complete":
            return
        families = {card.family for card in node.cards.values()}
        labels |= {"gpu.count": str(len(node.cards)), "gpu.present": str(bool(node.cards)).lower()}
        labels["nvidia.driver.version"] = DRIVER
        if families:
            family = families.pop() if len(families) == 1 else "mixed"
            labels |= {"gpu.model": family, "gpu.product": PRODUCTS[family]}
            labels |= {"gpu.vramGiB": "80", "mig.capable": "true"}
        else:
            for key in ("gpu.model", "gpu.product", "gpu.vramGiB", "mig.capable"):
                labels.pop(key, None)

    # Which devices there are.

    def _divided(self, node: Node) -> dict[str, Row]:
        pool = self.pools[node.pool] if node.pool else Pool(metal=False)
        rows: dict[str, Row] = {}
        for uuid, card in node.cards.items():
            turning = card.current != card.pending
            parted = card.current or bool(card.layout)
            part = Row("gpu.mig", uuid, bookable=not turning, healthy=not card.lost, pending=turning)
            is_atom = not parted and not turning and pool.sharing == "EXCLUSIVE"
            rows[uuid] = Row("gpu", bookable=is_atom, healthy=not card.lost, pending=turning)
            rows |= {f"{uuid}/gi{gi}/ci{ci}": part for gi, ci in card.layout}
            slots = 0 if parted else pool.slots
            rows |= {f"{uuid}/s{number}": replace(part, kind="gpu.slot") for number in range(slots)}
        for port, functions in node.ports.items():
            rows[port] = Row("nic")
            rows |= {f"{port}/vf{number}": Row("nic.vf", port, bookable=True) for number in range(functions)}
        rows |= {disk: Row("disk") for disk in node.disks}
        if pool.metal:
            rows[node.id] = Row("node", bookable=True)
        return rows

    def _held(self, node: Node, rows: dict[str, Row]) -> dict[str, Row]:
        """Keep what is booked, and offer nothing that overlaps it."""
        now = [device for booking in self.bookings.values() if not booking.later for device in booking.places]
        live = {each: node.rows.get(each, rows.get(each)) for each in now}
        booked = {each: row for each, row in live.items() if row is not None}
        kept = dict(rows)
        for each, row in booked.items():
            if each in rows:
                kept[each] = replace(rows[each], bookable=not rows[each].pending)
                continue
            whole = rows.get(row.parent or "")
            if row.kind == "node":
                kept[each] = replace(row, bookable=True, missing=True)
            elif row.kind == "gpu.slot" and whole is not None:
                kept[each] = Row(
                    "gpu.slot", row.parent, not whole.pending, whole.healthy, missing=True, pending=whole.pending
                )
            else:
                kept[each] = replace(row, bookable=not row.pending, healthy=False, missing=True)
                if row.parent and whole is None:
                    kept[row.parent] = replace(node.rows[row.parent], healthy=False, missing=True)
        kept = dict(_without_overlap(kept, booked))
        later = {device for booking in self.bookings.values() if booking.later for device in booking.places}
        return kept | dict(_reserved(node.rows, kept, later - kept.keys()))

    # Who may have what.

    def node_of(self, device: str) -> Node | None:
        """Return the node that has a device."""
        return next((node for node in self.nodes.values() if device in node.rows), None)

    def closed(self, node: Node, reasons: set[str]) -> bool:
        """Say whether it takes no new work; `reasons` are those that its conditions give."""
        trusted = node.trust == "PLATFORM" or (node.trust == "TENANT_OWNED" and node.pool is not None)
        return bool(reasons) or not trusted

    def is_taken(self, node: Node, device: str, *, later: bool) -> bool:
        """Say whether it, a part of it or what it is a part of is held."""
        for booking in self.bookings.values():
            for held, place in booking.places.items() if booking.later is later else ():
                if place == node.id and (held in _names(node, device) or device in _names(node, held)):
                    return True
        return False

    def defect(self, node: Node, device: str) -> str | None:
        """Say why nobody may have a device."""
        row = node.rows[device]
        whole = node.rows.get(row.parent or "", row)
        if row.pending:
            return "partitionPending"
        if not row.bookable:
            return "not bookable"
        if row.missing or whole.missing:
            return "missing"
        return None if row.healthy and whole.healthy else "unhealthy"

    def capacity(self, node: Node, *, closed: bool) -> dict[str, dict[str, int]]:
        """Count the atoms of a node."""
        booked = {device for booking in self.bookings.values() for device in booking.places}
        found: dict[str, dict[str, int]] = {}
        for device, row in node.rows.items():
            if not row.bookable and device not in booked:
                continue
            counts = found.setdefault(row.kind, dict.fromkeys(("allocatable", "allocated", "reserved", "available"), 0))
            usable = not closed and self.defect(node, device) is None
            allocated = self.is_taken(node, device, later=False)
            reserved = not allocated and self.is_taken(node, device, later=True)
            counts["allocated"] += allocated
            counts["reserved"] += reserved
            counts["available"] += usable and not allocated and not reserved
            counts["allocatable"] += usable or allocated or reserved
        return found

    def free(self, node: Node, kind: str, *, later: bool) -> set[str]:
        """Return the atoms of a class that a node has to give."""
        return {
            device
            for device, row in node.rows.items()
            if row.kind == kind and not self.is_taken(node, device, later=later) and self.defect(node, device) is None
        }

    def answer(self, devices: tuple[str, ...], reasons: dict[str, set[str]], *, later: bool) -> str:
        """Return the code with which a request for these devices is answered."""
        nodes = [self.node_of(device) for device in devices]
        if None in nodes:
            return "NOT_FOUND"
        node = nodes[0]
        assert node is not None
        if any(each is not node for each in nodes):
            return "INVALID_INPUT"
        if self.closed(node, reasons[node.id]):
            return "CONFLICT"
        rows = [node.rows[device] for device in devices]
        entangled = any(one != other and one in _names(node, other) for one in devices for other in devices)
        if entangled or any(row.kind not in ATOMS for row in rows):
            return "INVALID_INPUT"
        taken = any(self.is_taken(node, device, later=later) or self.defect(node, device) for device in devices)
        return "CONFLICT" if taken else "OK"


def total(*counted: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Add capacities up, as the API lists them."""
    kinds = sorted({kind for each in counted for kind in each})
    names = ("allocatable", "allocated", "reserved", "available")
    return [
        {"resource": kind} | {name: sum(each[kind][name] for each in counted if kind in each) for name in names}
        for kind in kinds
    ]


def _names(node: Node, device: str) -> set[str]:
    """Return all names of the hardware that a device is of; what is no device any more has them too."""
    row = node.rows.get(device)
    whole = row.parent if row is not None else re.sub("/(s|gi|vf).*", "", device)
    return {device, whole or device, node.id}


def _reserved(before: dict[str, Row], rows: dict[str, Row], later: set[str]) -> Iterator[tuple[str, Row]]:
    """Keep what is booked for later, as no atom, where it is the node or a part of what is there."""
    for each, row in ((each, before[each]) for each in later & before.keys()):
        whole = rows.get(row.parent or "")
        if row.kind == "node":
            yield each, replace(row, bookable=False, missing=True)
        elif row.kind == "gpu.slot" and whole is not None:
            yield each, Row("gpu.slot", row.parent, healthy=whole.healthy, missing=True, pending=whole.pending)
        elif whole is not None:
            yield each, replace(row, bookable=False, healthy=False, missing=True)


def _without_overlap(rows: dict[str, Row], booked: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    kinds: dict[str, set[str]] = {}
    for each, row in booked.items():
        if row.kind in OF_GPUS:
            kinds.setdefault(row.parent or each, set()).add(row.kind)
    for each, row in rows.items():
        of_card = kinds.get(row.parent or each)
        if of_card is None or each in booked or row.kind in of_card:
            yield each, row
        elif row.kind != "gpu.slot":
            yield each, replace(row, bookable=False)
