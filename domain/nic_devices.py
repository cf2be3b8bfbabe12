"""The physical network ports of a node as devices."""

from collections import Counter
from typing import Final

from domain import mac, pci
from domain.device import Device, DeviceClass, not_known_by_item, place_id
from domain.documents.nics import Nic, NicKind, NicsSection
from domain.facts import facts
from domain.ids import DeviceId, NodeId

_ATTRIBUTES: Final = ("name", "mac", "permanent_mac", "driver", "firmware", "removable", "rdma")


def nic_devices(node_id: NodeId, section: NicsSection) -> tuple[Device, ...]:
    """Return physical ports; bonds, VLANs, bridges and virtual links are no hardware."""
    ports = [(position, nic) for position, nic in enumerate(section.nics) if nic.kind is NicKind.PHYSICAL]
    addresses = Counter(_identity(nic) for _, nic in ports)
    places = Counter(pci.canonical(nic.pci_bus_id) for _, nic in ports)
    unavailable = not_known_by_item(section, "nics")
    devices = []
    for position, nic in ports:
        address, place = _identity(nic), pci.canonical(nic.pci_bus_id)
        # One address on two ports identifies neither, nor does the PCI function of a card with two ports.
        if address is not None and addresses[address] == 1:
            device_id = DeviceId(address)
        else:
            where = place if place is not None and places[place] == 1 else nic.name
            device_id = place_id(node_id, DeviceClass.NIC, where)
        devices.append(
            Device(
                id=device_id,
                node_id=node_id,
                device_class=DeviceClass.NIC,
                pci_bus_id=place,
                numa_node=nic.numa_node,
                attributes=facts(nic, _ATTRIBUTES),
                not_known=unavailable.get(str(position), {}),
            )
        )
    return tuple(devices)


def _identity(nic: Nic) -> str | None:
    return None if nic.removable else mac.identity(nic.permanent_mac)
