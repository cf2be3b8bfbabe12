"""What to write so that a node's devices are those that its inventory shows (rule 5)."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from domain.atoms import PLANNED_CLASSES, divide
from domain.booked_atoms import Booked, hold_booked
from domain.device import Device, DeviceClass
from domain.device_health import DeviceHealth, HealthPlan, plan_health, quarantine
from domain.device_match import adopt_ids
from domain.devices import complete_classes, unlisted_parents
from domain.division import UNPOOLED, Division
from domain.documents.document import Section
from domain.gpu_findings import due_at, findings
from domain.ids import BookingId, DeviceId, NodeId
from domain.last_known import is_lost, with_last_known

_LISTED_WITH: Final = {DeviceClass.GPU_MIG: DeviceClass.GPU, DeviceClass.NIC_VF: DeviceClass.NIC}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms hardware is planned: how the pool divides it, who owns reported devices, and which are booked.

    `contested` names what the node reported before and another one has still, with its class; `health` holds the node's
    faults as they are written.
    """

    now: datetime
    division: Division = UNPOOLED
    owners: Mapping[DeviceId, NodeId] = field(default_factory=dict)
    booked: Sequence[Booked] = ()
    contested: Mapping[DeviceId, DeviceClass] = field(default_factory=dict)
    health: tuple[DeviceHealth, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConflict:
    """A device that the node reports and another node owns: it is left alone.

    It was reported earlier where the sections say nothing of it now: silence is not absence.
    """

    device_id: DeviceId
    owner: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What else than the node's next report changes a plan: when it comes, the node is to be planned anew.

    `held_by` names the bookings that keep the plan from what hardware and pool ask for, until one of them ends;
    `contested` the reported devices that another node has, until it lets go of one; `due_at` is a time.
    """

    held_by: tuple[BookingId, ...] = ()
    contested: tuple[DeviceId, ...] = ()
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """The rows to write and to delete, and the ids that could not be taken, each sorted by id."""

    upsert: tuple[Device, ...]
    delete: tuple[DeviceId, ...]
    conflicts: tuple[DeviceConflict, ...]
    waits: Waits = field(default_factory=Waits)
    health: HealthPlan = field(default_factory=HealthPlan)

    @property
    def changes_anything(self) -> bool:
        """Say whether there is something to write of devices and their faults."""
        return bool(self.upsert or self.delete or self.health.write or self.health.ended)


def plan_devices(
    node_id: NodeId, current: Sequence[Device], shown: Sequence[Device], sections: Mapping[str, Section], terms: Terms
) -> DevicePlan:
    """Compare the node's devices with the `hardware_of` its sections; planning what was written plans nothing.

    `current` holds only this node's devices, `terms.owners` the owner of every reported id that has one. A device that
    is not seen is gone only when its list is complete; a gone one with live bookings stays, as missing.
    """
    ours = {device.id: device for device in current}
    taken = {device.id for device in shown if device.id not in ours and terms.owners.get(device.id, node_id) != node_id}
    free = [device for device in shown if device.id not in taken and device.parent_id not in taken]
    told, silent = _as_far_as_known(node_id, free, ours, sections, terms.now)
    hardware = [*told, *silent]
    divided = {device.id: device for device in divide(node_id, hardware, terms.division)}
    bent = hold_booked(divided, ours, terms.booked)
    gpus = [device for device in told if device.device_class is DeviceClass.GPU]
    telling = [gpu for gpu in gpus if not is_lost(gpu)]
    in_full = len(telling) == len(gpus) and DeviceClass.GPU in complete_classes(sections)
    found = findings(telling, terms.now, in_full=in_full)
    health = plan_health(terms.health, found, ours, bent.devices, terms.now)
    planned = quarantine(bent.devices, health.stands)
    told_again = {device.id for device in shown if device.id in taken and device.parent_id not in taken}
    contested = tuple(sorted(told_again | _still_contested(node_id, ours, shown, sections, terms)))
    times = [time for time in (bent.due_at, due_at(telling, terms.now)) if time is not None]
    return DevicePlan(
        upsert=_by_id(device for device in planned.values() if ours.get(device.id) != device),
        delete=tuple(sorted(ours.keys() - planned.keys())),
        conflicts=tuple(DeviceConflict(device_id, terms.owners[device_id]) for device_id in contested),
        waits=Waits(held_by=bent.held_by, contested=contested, due_at=min(times, default=None)),
        health=health,
    )


def _by_id(devices: Iterable[Device]) -> tuple[Device, ...]:
    return tuple(sorted(devices, key=lambda device: device.id))


def _still_contested(
    node_id: NodeId,
    ours: Mapping[DeviceId, Device],
    shown: Sequence[Device],
    sections: Mapping[str, Section],
    terms: Terms,
) -> set[DeviceId]:
    """Return what another node has and the sections say nothing of."""
    before = terms.contested.keys() - ours.keys() - {device.id for device in shown}
    if not before:
        return set()
    # Which part is of which parent nobody knows: one whose parts are not listed may have them all.
    unlisted = _LISTED_WITH.keys() if unlisted_parents(node_id, sections) else set()
    listed = complete_classes(sections)
    kinds = {each: terms.contested[each] for each in before}
    return {each for each, kind in kinds.items() if kind in unlisted or _LISTED_WITH.get(kind, kind) not in listed}


def _as_far_as_known(
    node_id: NodeId,
    seen: Sequence[Device],
    ours: Mapping[DeviceId, Device],
    sections: Mapping[str, Section],
    now: datetime,
) -> tuple[list[Device], list[Device]]:
    """Return what is seen, under the ids it is known by, and what the sections say nothing of."""
    adopted = adopt_ids(seen, ours)
    shown = {device.id: device for device in with_last_known(adopted, ours, now)}
    unseen = [device for device in ours.values() if device.id not in shown and not device.missing]
    if not unseen:
        return list(shown.values()), []
    complete = complete_classes(sections)
    names = {before.id: after.id for before, after in zip(seen, adopted, strict=True)}
    unlisted = {names.get(device_id, device_id) for device_id in unlisted_parents(node_id, sections)}
    silent = [device for device in unseen if _is_silence(device, shown, complete, unlisted)]
    # As it was before its faults, which are marked anew.
    return list(shown.values()), [replace(device, healthy=not is_lost(device)) for device in silent]


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
