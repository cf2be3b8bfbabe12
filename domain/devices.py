"""The devices that a node's sections show."""

from collections.abc import Iterator, Mapping

from domain.atoms import divide
from domain.device import Device, DeviceClass, drop_known
from domain.disk_devices import disk_devices
from domain.division import UNPOOLED, Division
from domain.documents.disks import DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, GpusSection
from domain.documents.nics import NicsSection
from domain.gpu_devices import gpu_devices, gpus_without_layout
from domain.ids import DeviceId, NodeId
from domain.nic_devices import nic_devices, ports_without_functions
from domain.sections import section_of

__all__ = ["Device", "DeviceClass", "complete_classes", "devices_of", "hardware_of", "unlisted_parents"]


def devices_of(node_id: NodeId, sections: Mapping[str, Section], division: Division = UNPOOLED) -> tuple[Device, ...]:
    """Return what the sections show as its pool divides it: with its atoms, each id once."""
    return tuple(divide(node_id, hardware_of(node_id, sections), division))


def hardware_of(node_id: NodeId, sections: Mapping[str, Section]) -> tuple[Device, ...]:
    """Return GPUs, MIG instances, physical network ports, virtual functions and disks; each id stands once.

    Of several with one id (paths of a disk) the first by name stands for all, in whatever order they are listed.
    """
    found: dict[str, Device] = {}
    for device in _devices(node_id, sections):
        other = found.setdefault(device.id, device)
        if other is not device and _name(device) < _name(other):
            found[device.id] = device
    return tuple(drop_known(device) for device in found.values())


def unlisted_parents(node_id: NodeId, sections: Mapping[str, Section]) -> frozenset[DeviceId]:
    """Return the reported devices of whose parts nothing is said: GPUs whose MIG layout, ports whose functions."""
    gpus = section_of(sections, GpusSection)
    nics = section_of(sections, NicsSection)
    return frozenset(
        (
            *(gpus_without_layout(node_id, gpus) if gpus is not None else ()),
            *(ports_without_functions(node_id, nics) if nics is not None else ()),
        )
    )


def complete_classes(sections: Mapping[str, Section]) -> frozenset[DeviceClass]:
    """Return the classes that the sections list in full: only of those can a device be missing."""
    gpus = section_of(sections, GpusSection)
    lists = {
        DeviceClass.GPU: "gpus" if gpus is not None and gpus.enumeration is Enumeration.COMPLETE else None,
        DeviceClass.NIC: "nics",
        DeviceClass.DISK: "disks",
    }
    return frozenset(
        device_class
        for device_class, name in lists.items()
        if name is not None and name in sections and name not in sections[name].unavailable
    )


def _devices(node_id: NodeId, sections: Mapping[str, Section]) -> Iterator[Device]:
    gpus = section_of(sections, GpusSection)
    nics = section_of(sections, NicsSection)
    disks = section_of(sections, DisksSection)
    if gpus is not None:
        yield from gpu_devices(node_id, gpus)
    if nics is not None:
        yield from nic_devices(node_id, nics)
    if disks is not None:
        yield from disk_devices(node_id, disks)


def _name(device: Device) -> str:
    return str(device.attributes.get("name", ""))
