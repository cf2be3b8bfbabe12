"""What a node has to give: its devices, who holds them when, and what of its memory and cores is claimed (rule 14)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from domain.device import Device, DeviceClass, fact, whole_by_id
from domain.ids import AllocationId, DeviceId, NodeId

ATOM_CLASSES: Final = frozenset(
    {DeviceClass.GPU, DeviceClass.GPU_MIG, DeviceClass.GPU_SLOT, DeviceClass.NIC_VF, DeviceClass.NODE}
)
"""Classes of which a device may be an atom (rule 5); whether it is one, its `bookable` says."""
WAIVED_REASONS: Final = ("observedGeneration=", "connectivity=disconnected")
"""Beginnings of what makes a node unschedulable and still refuses no claim.

An agent may be too old to tell the generation that it observed, and a session's lapse says little of the hardware: a
node that stays away gets a condition, which counts. Where there is a choice, nodes without any of these come first.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A time from its start up to its end, which it does not contain; without an end it goes on."""

    start: datetime
    end: datetime | None = None

    def overlaps(self, other: "Span") -> bool:
        """Say whether some moment is in both."""
        return (other.end is None or self.start < other.end) and (self.end is None or other.start < self.end)

    def contains(self, moment: datetime) -> bool:
        """Say whether a moment is in it."""
        return self.start <= moment and (self.end is None or moment < self.end)


@dataclass(frozen=True, slots=True)
class Booking:
    """A device that an allocation holds for a time."""

    device_id: DeviceId
    allocation_id: AllocationId
    span: Span


@dataclass(frozen=True, slots=True)
class HostClaim:
    """What an allocation takes of its host for a time; None takes nothing."""

    span: Span
    memory_gb: int | None
    cpu_cores: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A node as an allocation sees it; `memory_bytes` and `cpu_cores` are None where it did not report them.

    `faults` names what is wrong with its devices.
    """

    node_id: NodeId
    unschedulable_reasons: tuple[str, ...]
    memory_bytes: int | None
    cpu_cores: int | None
    devices: Mapping[DeviceId, Device]
    bookings: tuple[Booking, ...]
    claims: tuple[HostClaim, ...]
    faults: Mapping[DeviceId, tuple[str, ...]] = field(default_factory=dict)

    @property
    def closed(self) -> tuple[str, ...]:
        """What keeps new work off the node."""
        return tuple(reason for reason in self.unschedulable_reasons if not reason.startswith(WAIVED_REASONS))

    def holds(self, device_id: DeviceId) -> Iterator[DeviceId]:
        """Yield the device and all that it is a part of, the whole node last: the same hardware under other names.

        What was booked may be no device any more: then its id says what it is a part of.
        """
        part: DeviceId | None = device_id
        seen: set[DeviceId] = set()
        while part is not None and part not in seen:
            seen.add(part)
            yield part
            device = self.devices.get(part)
            part = device.parent_id if device is not None else whole_by_id(part)
        whole = DeviceId(self.node_id)
        if whole not in seen:
            yield whole

    def defect(self, device: Device) -> str | None:
        """Say what keeps a device from being given to anybody."""
        if device.partition_pending:
            return "partitionPending"
        if not device.bookable:
            return "not bookable"
        for part in self.holds(device.id):
            owner = self.devices.get(part)
            # A GPU may be given whatever is wrong with the rest of its node.
            concerns = part == device.id or part != DeviceId(self.node_id)
            if owner is not None and concerns and (owner.missing or not owner.healthy):
                return "missing" if owner.missing else self._unhealthy(device)
        return None

    def _unhealthy(self, device: Device) -> str:
        """Name what is wrong with a device, or with what it is a part of."""
        lost = ("lost",) if any(fact(owner, "lost") is True for owner in self._wholes(device)) else ()
        named = sorted({*lost, *(each for owner in self._wholes(device) for each in self.faults.get(owner.id, ()))})
        return f"unhealthy ({', '.join(named)})" if named else "unhealthy"

    def _wholes(self, device: Device) -> list[Device]:
        ids = {device.id, device.parent_id}
        return [self.devices[part] for part in self.holds(device.id) if part in ids and part in self.devices]

    def taken(self, span: Span) -> "Taken":
        """Say which devices somebody holds at some moment of a time."""
        held = {each.device_id: each for each in self.bookings if each.span.overlaps(span)}
        wholes = {whole: each for each in held.values() for whole in self.holds(each.device_id)}
        return Taken(self, held, wholes)


@dataclass(frozen=True, slots=True)
class Taken:
    """Bookings that stand in the way: of a device, of what it is a part of, or of a part of it."""

    room: Room
    held: Mapping[DeviceId, Booking]
    wholes: Mapping[DeviceId, Booking]

    def by(self, device_id: DeviceId) -> Booking | None:
        """Return a booking that keeps the device from being held too."""
        found = self.wholes.get(device_id)
        return found or next((self.held[part] for part in self.room.holds(device_id) if part in self.held), None)
