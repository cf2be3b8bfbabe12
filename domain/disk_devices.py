"""The disks of a node as devices: inventory only, never bookable."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from domain import disk_identity, pci
from domain.availability import known_text
from domain.device import Device, DeviceClass, id_part, not_known_by_item, place_id
from domain.disk_identity import DiskIdentity
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
        for position, (device_id, disk) in enumerate(zip(disk_ids(node_id, section), section.disks, strict=True))
    )


def disk_ids(node_id: NodeId, section: DisksSection) -> list[DeviceId]:
    """Return an id per disk; of equal identity but not one disk, they are told apart by size, place or name."""
    known = [(disk, disk_identity.of_disk(disk)) for disk in section.disks]
    plain = [_plain_id(node_id, disk, identity) for disk, identity in known]
    held: dict[DeviceId, list[tuple[Disk, DiskIdentity]]] = {}
    for device_id, each in zip(plain, known, strict=True):
        held.setdefault(device_id, []).append(each)
    apart = {
        each: (Counter(disk.size_bytes for disk, _ in same), Counter(_place(disk) for disk, _ in same))
        for each, same in held.items()
        if not _is_one(same)
    }
    return [
        DeviceId(f"{device_id}:{_difference(disk, *apart[device_id])}") if device_id in apart else device_id
        for device_id, disk in zip(plain, section.disks, strict=True)
    ]


def _plain_id(node_id: NodeId, disk: Disk, identity: DiskIdentity) -> DeviceId:
    in_fleet = disk_identity.fleet_text(disk, identity)
    if in_fleet is not None:
        return DeviceId(in_fleet)
    return place_id(node_id, DeviceClass.DISK, disk_identity.own_text(identity) or _place(disk))


def _is_one(same: Sequence[tuple[Disk, DiskIdentity]]) -> bool:
    """Say whether disks of one id are one disk: the same WWN, serial and size. A serial alone is no proof."""
    _, first = same[0]
    return len(same) == 1 or (first.wwn is not None and all(identity == first for _, identity in same))


def _difference(disk: Disk, sizes: Counter[int | None], places: Counter[str]) -> str:
    if disk.size_bytes is not None and sizes[disk.size_bytes] == 1:
        return str(disk.size_bytes)
    # Where even the places are equal, only the name tells disks apart, and none may be dropped for another.
    return id_part(_place(disk) if places[_place(disk)] == 1 else disk.name)


def _place(disk: Disk) -> str:
    return known_text(disk.bus_path) or disk.name
