"""Hardware that left one node and turned up on another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from domain.device import Device, DeviceClass, is_place_id
from domain.device_plan import DevicePlan
from domain.events import PlannedEvent
from domain.ids import DeviceId, NodeId, SnapshotId
from domain.jsonvalue import JsonValue

DEVICE_MOVED: Final = "node.device.moved"
_HARDWARE: Final = frozenset({DeviceClass.GPU, DeviceClass.NIC, DeviceClass.DISK})


@dataclass(frozen=True, slots=True)
class Station:
    """A node on a device's way, with the snapshot in which it was first gone, or first there."""

    node_id: NodeId
    snapshot_id: SnapshotId


def departed(before: Sequence[Device], plan: DevicePlan) -> tuple[DeviceId, ...]:
    """Return the hardware that a plan takes from its node, of what is known beyond its node."""
    gone = set(plan.delete)
    return _movable(device for device in before if device.id in gone)


def arrived(before: Sequence[Device], plan: DevicePlan) -> tuple[DeviceId, ...]:
    """Return the hardware that a plan brings to its node, of what is known beyond its node."""
    known = {device.id for device in before}
    return _movable(device for device in plan.upsert if device.id not in known)


def device_moved(device_id: DeviceId, left: Station, came: Station) -> PlannedEvent:
    """Tell a move, in the same words on both sides."""
    return PlannedEvent(DEVICE_MOVED, {"deviceId": device_id, "from": _station(left), "to": _station(came)})


def _movable(devices: Iterable[Device]) -> tuple[DeviceId, ...]:
    return tuple(
        device.id
        for device in devices
        if device.device_class in _HARDWARE and not is_place_id(device.id, device.node_id)
    )


def _station(station: Station) -> dict[str, JsonValue]:
    return {"nodeId": station.node_id, "snapshotId": station.snapshot_id}
