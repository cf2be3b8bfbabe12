"""Devices that are known already, under another id: ids are stable (rule 5)."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from domain import disk_identity
from domain.device import Device, DeviceClass, is_place_id
from domain.disk_identity import DiskIdentity, Sameness
from domain.ids import DeviceId
from domain.jsonvalue import JsonValue


def adopt_ids(seen: Sequence[Device], known: Mapping[DeviceId, Device]) -> list[Device]:
    """Give seen devices the ids under which the node has them: a GPU that lost its UUID, a WWN in another form."""
    ids = {device.id for device in seen}
    unseen = [device for device in known.values() if device.id not in ids and not device.missing]
    new = [device for device in seen if device.id not in known]
    renamed = {**_nameless_gpus(new, unseen), **_rewritten_disks(new, unseen)} if new and unseen else {}
    if not renamed:
        return list(seen)
    return [_renamed(device, renamed) for device in seen]


def _renamed(device: Device, names: Mapping[DeviceId, DeviceId]) -> Device:
    """Name the device as it is known, with its peers; a part is named by its parent."""
    parent_id = device.parent_id
    if parent_id is not None and parent_id in names:
        own = device.id.removeprefix(parent_id)
        name = DeviceId(f"{names[parent_id]}{own}") if own != device.id else device.id
        return replace(device, id=name, parent_id=names[parent_id])
    return replace(
        device,
        id=names.get(device.id, device.id),
        nvlink_peers=tuple(sorted(names.get(peer, peer) for peer in device.nvlink_peers)),
    )


def _nameless_gpus(new: Iterable[Device], unseen: Iterable[Device]) -> dict[DeviceId, DeviceId]:
    """Take a GPU without a UUID (the driver lost it) for the one that was last seen at its PCI address."""
    was_at = _unique((device.pci_bus_id, device) for device in unseen if device.device_class is DeviceClass.GPU)
    return {
        device.id: was_at[device.pci_bus_id].id
        for device in new
        if device.device_class is DeviceClass.GPU
        and is_place_id(device.id, device.node_id)
        and device.pci_bus_id in was_at
    }


def _rewritten_disks(new: Iterable[Device], unseen: Iterable[Device]) -> dict[DeviceId, DeviceId]:
    old_disks = _unique(_by_serial(unseen))
    new_disks = _unique(_by_serial(new))
    return {
        device.id: old_disks[key].id
        for key, device in new_disks.items()
        if key in old_disks and disk_identity.compare(_identity(device), _identity(old_disks[key])) is Sameness.SAME
    }


def _by_serial(devices: Iterable[Device]) -> Iterable[tuple[Hashable, Device]]:
    for device in devices:
        identity = _identity(device)
        if device.device_class is DeviceClass.DISK and identity.serial is not None:
            yield (identity.serial, identity.namespace, identity.model, identity.size), device


def _unique(pairs: Iterable[tuple[Hashable, Device]]) -> dict[Hashable, Device]:
    """Index by key, without the keys that several have."""
    found: dict[Hashable, Device] = {}
    several: set[Hashable] = set()
    for key, device in pairs:
        if key is None or key in found:
            several.add(key)
        found.setdefault(key, device)
    return {key: device for key, device in found.items() if key not in several}


def _identity(disk: Device) -> DiskIdentity:
    facts = disk.attributes
    namespace = facts.get("namespace")
    return disk_identity.identity_of(
        wwn=_text(facts.get("wwn")),
        serial=_text(facts.get("serial")),
        namespace=namespace if isinstance(namespace, int) else None,
        model=_text(facts.get("model")),
        size=_text(facts.get("sizeBytes")),
    )


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
