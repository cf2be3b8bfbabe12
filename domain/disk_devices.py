"""The disks of a node as devices: inventory only, never bookable."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from domain import disk_identity, pci
from domain.availability import known_text
from domain.device import Device, DeviceClass, id_part, not_known_by_item, place_id
from domain.documents.disks import Disk, DisksSection
from domain.facts import facts
from domain.ids import DeviceId, NodeId

_ATTRIBUTES: Final = (
    "name",
    "wwn",
    "serial",
    "namespace",
    "model",
    "size_bytes",
    "rotational",
    "transport",
    "bus_path",
)


def disk_devices(node_id: NodeId, section: DisksSection) -> tuple[Device, ...]:
    """Return the disks; paths of one disk have one id."""
    unavailable = not_known_by_item(section, "disks")
    return tuple(
        Device(
            id=device_id,
            node_id=node_id,
            device_class=DeviceClass.DISK,
            pci_bus_id=pci.canonical(disk.pci_bus_id),
            attributes=facts(disk, _ATTRIBUTES),
            not_known=unavailable.get(str(position), {}),
        )
        for position, (device_id, disk) in enumerate(zip(_ids(node_id, section.disks), section.disks, strict=True))
    )


def _ids(node_id: NodeId, disks: Sequence[Disk]) -> list[DeviceId]:
    """Return an id per disk; those of equal identity that are not one disk are told apart by size, else by place."""
    plain = [_id(node_id, disk) for disk in disks]
    held: dict[DeviceId, list[Disk]] = {}
    for device_id, disk in zip(plain, disks, strict=True):
        held.setdefault(device_id, []).append(disk)
    apart = {
        device_id: Counter(disk.size_bytes for disk in same) for device_id, same in held.items() if not _is_one(same)
    }
    return [
        DeviceId(f"{device_id}:{_difference(disk, apart[device_id])}") if device_id in apart else device_id
        for device_id, disk in zip(plain, disks, strict=True)
    ]


def _id(node_id: NodeId, disk: Disk) -> DeviceId:
    fleet_wide = disk_identity.global_id(disk)
    if fleet_wide is not None:
        return DeviceId(fleet_wide)
    own = disk_identity.own_text(disk_identity.of_disk(disk))
    return place_id(node_id, DeviceClass.DISK, own if own is not None else _place(disk))


def _is_one(disks: Sequence[Disk]) -> bool:
    """Say whether disks of one identity are one disk: the same WWN, serial and size. A serial alone is no proof."""
    first = disk_identity.of_disk(disks[0])
    if len(disks) == 1:
        return True
    return first.wwn is not None and all(disk_identity.of_disk(disk) == first for disk in disks[1:])


def _difference(disk: Disk, sizes: Counter[int | None]) -> str:
    alone = disk.size_bytes is not None and sizes[disk.size_bytes] == 1
    return str(disk.size_bytes) if alone else id_part(_place(disk))


def _place(disk: Disk) -> str:
    return known_text(disk.bus_path) or disk.name
