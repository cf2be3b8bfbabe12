"""What live bookings keep of a node's devices: nothing is pulled from under them (rule 5)."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from domain.device import Device, DeviceClass
from domain.ids import DeviceId

_OF_GPUS: Final = frozenset({DeviceClass.GPU, DeviceClass.GPU_MIG, DeviceClass.GPU_SLOT})
_ATOMS: Final = _OF_GPUS | {DeviceClass.NIC_VF, DeviceClass.NODE}


def hold_booked(
    planned: Mapping[DeviceId, Device], known: Mapping[DeviceId, Device], booked: AbstractSet[DeviceId]
) -> tuple[dict[DeviceId, Device], tuple[DeviceId, ...]]:
    """Bend a plan so that every booked device stays; return it with the devices for which it was bent.

    A booked device that the plan lacks stays as missing, with its parent. One that would be no atom any more stays
    one, unless its GPU waits for another MIG mode. While something of a GPU is booked, nothing that would overlap it
    is offered: neither slots of a GPU that is booked whole, nor the whole of one with a booked slot.
    """
    either = {**planned, **known}
    live = [either[device_id] for device_id in sorted(booked) if device_id in either]
    if not live:
        return dict(planned), ()
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
    return bent, tuple(sorted(held))


def _kept(device: Device, planned: Mapping[DeviceId, Device]) -> Device:
    now = planned.get(device.id)
    if now is not None:
        stays_atom = device.device_class in _ATOMS and not now.partition_pending
        return replace(now, bookable=True) if stays_atom else now
    if device.device_class is DeviceClass.NODE:
        return replace(device, healthy=True, missing=True)
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
    return _gone(device)


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
