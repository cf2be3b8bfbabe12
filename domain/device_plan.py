"""What to write so that a node's devices are those that its inventory shows (rule 5)."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from domain.device import COLUMNS, Device, DeviceClass, drop_known
from domain.device_match import adopt_ids
from domain.devices import complete_classes
from domain.documents.document import Section
from domain.ids import DeviceId, NodeId


@dataclass(frozen=True, slots=True)
class DeviceConflict:
    """A device that the node reports and another node owns: it is left alone."""

    device_id: DeviceId
    owner: NodeId


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The rows to write and to delete, and the ids that could not be taken, each sorted by id."""

    upsert: tuple[Device, ...]
    delete: tuple[DeviceId, ...]
    conflicts: tuple[DeviceConflict, ...]


def plan_devices(
    current: Sequence[Device],
    seen: Sequence[Device],
    sections: Mapping[str, Section],
    owners: Mapping[DeviceId, NodeId],
    booked: AbstractSet[DeviceId],
) -> DevicePlan:
    """Compare the node's devices with those its sections show; planning what was written plans nothing.

    `current` holds only this node's devices, `owners` the owner of every reported id that has one. A device that is
    not seen is gone only when its class is listed in full; a gone one with live bookings stays, as missing.
    """
    ours = {device.id: device for device in current}
    conflicts = {
        device.id: DeviceConflict(device.id, owners[device.id])
        for device in seen
        if device.id not in ours and owners.get(device.id, device.node_id) != device.node_id
    }
    free = [device for device in seen if device.id not in conflicts]
    present = {device.id: _with_last_known(device, ours.get(device.id)) for device in adopt_ids(free, ours)}
    complete = complete_classes(sections)
    gone = [device for device in current if device.id not in present and device.device_class in complete]
    kept = [replace(device, healthy=False, missing=True) for device in gone if device.id in booked]
    return DevicePlan(
        upsert=_by_id(device for device in (*present.values(), *kept) if ours.get(device.id) != device),
        delete=tuple(sorted(device.id for device in gone if device.id not in booked)),
        conflicts=tuple(conflicts[device_id] for device_id in sorted(conflicts)),
    )


def _by_id(devices: Iterable[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda device: device.id))


def _with_last_known(seen: Device, known: Device | None) -> Device:
    """Fill in what a GPU that cannot be asked now was last known to be: silence changes nothing."""
    if known is None or seen.device_class is not DeviceClass.GPU:
        return seen
    if seen.mig_capable is None:
        # The MIG mode could not be read: a partitioned GPU does not become bookable by that.
        seen = replace(seen, bookable=known.bookable, partition_pending=known.partition_pending)
    if seen.attributes.get("lost") is not True:
        return seen
    unread = {name: getattr(known, name) for name in COLUMNS.values() if getattr(seen, name) in (None, ())}
    return drop_known(replace(seen, **unread, attributes={**known.attributes, **seen.attributes}))
