"""Which of a node's devices are atoms: how its pool divides what the machine has (rule 5)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from domain.device import Device, DeviceClass, fact
from domain.division import Division
from domain.ids import DeviceId, NodeId
from domain.jsonvalue import JsonValue
from domain.pool import Sharing

PLANNED_CLASSES: Final = frozenset({DeviceClass.GPU_SLOT, DeviceClass.NODE})
"""Devices that no section shows: the pool makes them."""


def divide(node_id: NodeId, hardware: Iterable[Device], division: Division) -> Iterator[Device]:
    """Return the hardware with its atoms marked, the slots of shared GPUs, and the node where it is one atom.

    Of a GPU either the whole, its MIG instances or its slots are atoms, never two of those; none while its MIG mode
    is about to change. A partitioned GPU has no slots, whatever its pool says: there is no whole to share.
    """
    found = list(hardware)
    partitioned = {device.parent_id for device in found if device.device_class is DeviceClass.GPU_MIG}
    gpus = {
        device.id: _divided(device, division, has_instances=device.id in partitioned)
        for device in found
        if device.device_class is DeviceClass.GPU
    }
    for device in found:
        match device.device_class:
            case DeviceClass.GPU:
                yield gpus[device.id]
                if device.id not in partitioned:
                    yield from _slots(gpus[device.id], division)
            case DeviceClass.GPU_MIG if device.parent_id in gpus:
                yield _part_of(gpus[device.parent_id], device)
            case _:
                yield device
    if division.whole_node:
        yield Device(id=DeviceId(node_id), node_id=node_id, device_class=DeviceClass.NODE, bookable=True)


def mig_mode(gpu: Device) -> Mapping[str, JsonValue]:
    """Return what is known of a GPU's MIG mode: `current` and `pending`."""
    mode = fact(gpu, "migMode")
    return mode if isinstance(mode, Mapping) else {}


def _divided(gpu: Device, division: Division, *, has_instances: bool) -> Device:
    mode = mig_mode(gpu)
    is_pending = len(mode) > 1 and mode["current"] is not mode["pending"]
    is_whole = not has_instances and mode.get("current") is not True
    is_atom = is_whole and not is_pending and division.sharing is Sharing.EXCLUSIVE
    return replace(gpu, bookable=is_atom, partition_pending=is_pending)


def _slots(gpu: Device, division: Division) -> Iterator[Device]:
    for number in range(0 if mig_mode(gpu).get("current") is True else division.slots):
        slot = Device(
            id=DeviceId(f"{gpu.id}/s{number}"),
            node_id=gpu.node_id,
            device_class=DeviceClass.GPU_SLOT,
            parent_id=gpu.id,
            # The card's memory: slots share it.
            vram_gib=gpu.vram_gib,
            attributes={"slot": number, "sharing": division.sharing.value},
        )
        yield _part_of(gpu, slot)


def _part_of(gpu: Device, part: Device) -> Device:
    """Give a part what it has from its GPU: selectors ask for it, and a fault of the board is one of all its parts."""
    return replace(
        part,
        bookable=not gpu.partition_pending,
        partition_pending=gpu.partition_pending,
        healthy=gpu.healthy,
        gpu_product=gpu.gpu_product,
        gpu_model=gpu.gpu_model,
        index=gpu.index,
        pci_bus_id=gpu.pci_bus_id,
        numa_node=gpu.numa_node,
        architecture=gpu.architecture,
        compute_capability=gpu.compute_capability,
        driver_version=gpu.driver_version,
    )
