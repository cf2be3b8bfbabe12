"""The physical network ports of a node, with their virtual functions, as devices."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from domain import mac, pci
from domain.device import Device, DeviceClass, not_known_by_item, place_id
from domain.documents.nics import Nic, NicKind, NicsSection
from domain.facts import facts
from domain.ids import DeviceId, NodeId
from domain.vf_devices import LIST, vf_devices, vf_ids

_ATTRIBUTES: Final = ("name", "mac", "permanent_mac", "driver", "firmware", "removable", "rdma")


def nic_devices(node_id: NodeId, section: NicsSection) -> Iterator[Device]:
    """Return physical ports and their functions; bonds, VLANs, bridges and virtual links are no hardware."""
    unavailable = not_known_by_item(section, "nics")
    ports, ids = _ports(section), nic_ids(node_id, section)
    functions = vf_ids((port, nic) for port, (_, nic) in zip(ids, ports, strict=True))
    for device_id, (position, nic), own in zip(ids, ports, functions, strict=True):
        facts_unavailable = unavailable.get(str(position), {})
        port = Device(
            id=device_id,
            node_id=node_id,
            device_class=DeviceClass.NIC,
            pci_bus_id=pci.canonical(nic.pci_bus_id),
            numa_node=nic.numa_node,
            attributes=facts(nic, _ATTRIBUTES),
            not_known={fact: why for fact, why in facts_unavailable.items() if not fact.startswith(f"{LIST}.")},
        )
        yield port
        yield from vf_devices(node_id, port, nic, own, facts_unavailable)


def ports_without_functions(node_id: NodeId, section: NicsSection) -> list[DeviceId]:
    """Return the ports whose functions could not be listed."""
    return [
        device_id
        for device_id, (position, _) in zip(nic_ids(node_id, section), _ports(section), strict=True)
        if f"nics.{position}.{LIST}" in section.unavailable
    ]


def nic_ids(node_id: NodeId, section: NicsSection) -> list[DeviceId]:
    """Return an id per physical port: its permanent address, else its place within the node."""
    known = [(nic, _identity(nic), pci.canonical(nic.pci_bus_id)) for _, nic in _ports(section)]
    addresses = Counter(address for _, address, _ in known)
    places = Counter(place for _, _, place in known)
    # One address on two ports identifies neither, nor does the PCI function of a card with two ports.
    return [
        DeviceId(address)
        if address is not None and addresses[address] == 1
        else place_id(node_id, DeviceClass.NIC, place if place is not None and places[place] == 1 else nic.name)
        for nic, address, place in known
    ]


def _ports(section: NicsSection) -> list[tuple[int, Nic]]:
    return [(position, nic) for position, nic in enumerate(section.nics) if nic.kind is NicKind.PHYSICAL]


def _identity(nic: Nic) -> str | None:
    return None if nic.removable else mac.identity(nic.permanent_mac)
