"""What to write so that a node's devices are those that its inventory shows (rule 5)."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from domain.atoms import PLANNED_CLASSES, divide, mig_mode
from domain.booked_atoms import hold_booked
from domain.device import COLUMNS, Device, DeviceClass, drop_known
from domain.device_match import adopt_ids
from domain.devices import complete_classes, hardware_of, unlisted_parents
from domain.division import UNPOOLED, Division
from domain.documents.document import Section
from domain.ids import DeviceId, NodeId

_LISTED_WITH: Final = {DeviceClass.GPU_MIG: DeviceClass.GPU, DeviceClass.NIC_VF: DeviceClass.NIC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms hardware is planned: how the pool divides it, who owns reported devices, and which are booked."""

    division: Division = UNPOOLED
    owners: Mapping[DeviceId, NodeId] = field(default_factory=dict)
    booked: AbstractSet[DeviceId] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceConflict:
    """A device that the node reports and another node owns: it is left alone."""

    device_id: DeviceId
    owner: NodeId


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The rows to write and to delete, and the ids that could not be taken, each sorted by id.

    `held_by` names the devices whose bookings keep the plan from what hardware and pool ask for: once one of those
    bookings ends, the node is to be planned anew.
    """

    upsert: tuple[Device, ...]
    delete: tuple[DeviceId, ...]
    conflicts: tuple[DeviceConflict, ...]
    held_by: tuple[DeviceId, ...] = ()


def plan_devices(
    node_id: NodeId, current: Sequence[Device], sections: Mapping[str, Section], terms: Terms
) -> DevicePlan:
    """Compare the node's devices with those its sections show; planning what was written plans nothing.

    `current` holds only this node's devices, `terms.owners` the owner of every reported id that has one. A device that
    is not seen is gone only when its list is complete; a gone one with live bookings stays, as missing.
    """
    ours = {device.id: device for device in current}
    seen = hardware_of(node_id, sections)
    taken = {device.id for device in seen if device.id not in ours and terms.owners.get(device.id, node_id) != node_id}
    free = [device for device in seen if device.id not in taken and device.parent_id not in taken]
    hardware = _as_far_as_known(node_id, free, ours, sections)
    divided = {device.id: device for device in divide(node_id, hardware, terms.division)}
    planned, held_by = hold_booked(divided, ours, terms.booked)
    return DevicePlan(
        upsert=_by_id(device for device in planned.values() if ours.get(device.id) != device),
        delete=tuple(sorted(ours.keys() - planned.keys())),
        conflicts=tuple(
            DeviceConflict(device.id, terms.owners[device.id])
            for device in _by_id(seen)
            if device.id in taken and device.parent_id not in taken
        ),
        held_by=held_by,
    )


def _by_id(devices: Iterable[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda device: device.id))


def _as_far_as_known(
    node_id: NodeId, seen: Sequence[Device], ours: Mapping[DeviceId, Device], sections: Mapping[str, Section]
) -> list[Device]:
    """Return the hardware: what is seen, under the ids it is known by, and what the sections say nothing of."""
    adopted = adopt_ids(seen, ours)
    shown = {device.id: _with_last_known(device, ours.get(device.id)) for device in adopted}
    unseen = [device for device in ours.values() if device.id not in shown and not device.missing]
    if not unseen:
        return list(shown.values())
    complete = complete_classes(sections)
    names = {before.id: after.id for before, after in zip(seen, adopted, strict=True)}
    unlisted = {names.get(device_id, device_id) for device_id in unlisted_parents(node_id, sections)}
    silent = [device for device in unseen if _is_silence(device, shown, complete, unlisted)]
    return [*shown.values(), *silent]


def _is_silence(
    unseen: Device,
    shown: Mapping[DeviceId, Device],
    complete: AbstractSet[DeviceClass],
    unlisted: AbstractSet[DeviceId],
) -> bool:
    """Say whether a device may still be there: neither its list, nor that of its parent's parts, is complete."""
    if unseen.device_class in PLANNED_CLASSES:
        return False
    if unseen.parent_id in shown:
        return unseen.parent_id in unlisted
    return _LISTED_WITH.get(unseen.device_class, unseen.device_class) not in complete


def _with_last_known(seen: Device, known: Device | None) -> Device:
    """Fill in what a GPU that cannot be asked now was last known to be: silence changes nothing."""
    if known is None or seen.device_class is not DeviceClass.GPU:
        return seen
    if seen.mig_capable is None and mig_mode(known):
        # The MIG mode could not be read: a partitioned GPU does not become whole by that.
        mode = {**mig_mode(known), **mig_mode(seen)}
        seen = replace(seen, mig_capable=known.mig_capable, attributes={**seen.attributes, "migMode": mode})
    if seen.attributes.get("lost") is not True:
        return drop_known(seen)
    unread = {name: getattr(known, name) for name in COLUMNS.values() if getattr(seen, name) in (None, ())}
    return drop_known(replace(seen, **unread, attributes={**known.attributes, **seen.attributes}))
