"""What bookings keep of a node's devices: nothing is pulled from under them (rule 5)."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from domain.device import Device, DeviceClass
from domain.ids import BookingId, DeviceId

_OF_GPUS: Final = frozenset({DeviceClass.GPU, DeviceClass.GPU_MIG, DeviceClass.GPU_SLOT})
_ATOMS: Final = _OF_GPUS | {DeviceClass.NIC_VF, DeviceClass.NODE}


@dataclass(frozen=True, slots=True)
class Booked:
    """A booking that has not ended, as planning sees it; without `begins_at` it is live."""

    id: BookingId
    device_id: DeviceId
    begins_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Bent:
    """A plan as bookings bend it: once one of `held_by` ends, and at `due_at`, it is to be made anew."""

    devices: dict[DeviceId, Device]
    held_by: tuple[BookingId, ...] = ()
    due_at: datetime | None = None


def hold_booked(planned: Mapping[DeviceId, Device], known: Mapping[DeviceId, Device], booked: Sequence[Booked]) -> Bent:
    """Bend a plan so that every booked device stays.

    A device with a live booking that the plan lacks stays as missing, with its parent. One that would be no atom any
    more stays one, unless its GPU waits for another MIG mode. While something of a GPU is booked, nothing that would
    overlap it is offered: neither slots of a GPU that is booked whole, nor the whole of one with a booked slot.

    What is booked for later only stays too, as no atom and in nobody's way, as long as what it is a part of is there.
    A GPU that left takes its bookings to where it turns up.
    """
    either = {**planned, **known}
    there = [booking for booking in booked if booking.device_id in either]
    if not there:
        return Bent(dict(planned))
    live = {booking.device_id for booking in there if booking.begins_at is None}
    devices, holding = _bend(planned, known, live)
    reserved = _reserved(devices, known, {booking.device_id for booking in there} - devices.keys())
    devices |= reserved
    _, begun = _bend(planned, known, {booking.device_id for booking in there})
    waited_for = [
        booking.begins_at for booking in there if booking.begins_at and booking.device_id in begun & devices.keys()
    ]
    holds = [each for each in there if each.device_id in (holding if each.begins_at is None else reserved)]
    return Bent(devices, tuple(sorted(booking.id for booking in holds)), min(waited_for, default=None))


def _bend(
    planned: Mapping[DeviceId, Device], known: Mapping[DeviceId, Device], booked: AbstractSet[DeviceId]
) -> tuple[dict[DeviceId, Device], set[DeviceId]]:
    """Return the plan with these devices booked, and those for which it was bent."""
    either = {**planned, **known}
    live = [either[device_id] for device_id in sorted(booked)]
    bent = dict(planned)
    held: set[DeviceId] = set()
    for device in live:
        stays = _kept(device, planned)
        if stays != planned.get(device.id):
            bent[device.id] = stays
            held.add(device.id)
            parent_id = device.parent_id
            if parent_id is not None and parent_id in known and parent_id not in planned:
                bent[parent_id] = _gone(known[parent_id])
    held |= _offer_no_overlap(bent, live)
    return bent, held


def _reserved(
    devices: Mapping[DeviceId, Device], known: Mapping[DeviceId, Device], booked: AbstractSet[DeviceId]
) -> dict[DeviceId, Device]:
    """Return what stays of the devices that are booked for later and are not planned."""
    unplanned = [known[device_id] for device_id in sorted(booked & known.keys())]
    return {
        device.id: replace(_kept(device, devices), bookable=False)
        for device in unplanned
        if device.device_class is DeviceClass.NODE or device.parent_id in devices
    }


def _kept(device: Device, planned: Mapping[DeviceId, Device]) -> Device:
    now = planned.get(device.id)
    if now is not None:
        stays_atom = device.device_class in _ATOMS and not now.partition_pending
        return replace(now, bookable=True) if stays_atom else now
    if device.device_class is DeviceClass.NODE:
        return replace(device, bookable=True, healthy=True, missing=True)
    gpu = planned.get(device.parent_id) if device.parent_id is not None else None
    if device.device_class is DeviceClass.GPU_SLOT and gpu is not None:
        # Only the pool took it away: the card works on, and so does whoever holds the slot.
        return replace(
            device,
            missing=True,
            healthy=gpu.healthy,
            bookable=not gpu.partition_pending,
            partition_pending=gpu.partition_pending,
        )
    return replace(_gone(device), bookable=device.device_class in _ATOMS and not device.partition_pending)


def _gone(device: Device) -> Device:
    return replace(device, healthy=False, missing=True)


def _offer_no_overlap(planned: dict[DeviceId, Device], live: Collection[Device]) -> set[DeviceId]:
    """Offer nothing that overlaps what is booked; return the booked devices that this is for."""
    booked: dict[DeviceId, dict[DeviceId, DeviceClass]] = {}
    for device in live:
        if device.device_class in _OF_GPUS:
            booked.setdefault(device.parent_id or device.id, {})[device.id] = device.device_class
    held: set[DeviceId] = set()
    for device in list(planned.values()) if booked else ():
        here = booked.get(device.parent_id or device.id)
        if here is None or device.id in here or device.device_class in here.values():
            continue
        if device.device_class is DeviceClass.GPU_SLOT:
            del planned[device.id]
        elif device.bookable:
            planned[device.id] = replace(device, bookable=False)
        else:
            continue
        held |= here.keys()
    return held
