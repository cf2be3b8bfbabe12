"""SR-IOV virtual functions of network ports as devices."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from domain import mac, pci
from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.documents.nics import Nic, Vf
from domain.facts import facts
from domain.ids import DeviceId, NodeId

LIST: Final = "vfs"


def vf_devices(
    node_id: NodeId, parent: Device, nic: Nic, ids: Sequence[DeviceId], unavailable: Mapping[str, Availability]
) -> Iterator[Device]:
    """Return the functions of a port, which `ids` names in their order."""
    for position, (device_id, function) in enumerate(zip(ids, nic.vfs, strict=True)):
        prefix = f"{LIST}.{position}."
        yield Device(
            id=device_id,
            node_id=node_id,
            device_class=DeviceClass.NIC_VF,
            parent_id=parent.id,
            bookable=True,
            index=function.index,
            pci_bus_id=pci.canonical(function.pci_bus_id),
            numa_node=parent.numa_node,
            attributes=facts(function, ("mac",)),
            not_known={path.removeprefix(prefix): why for path, why in unavailable.items() if path.startswith(prefix)},
        )


def vf_ids(ports: Iterable[tuple[DeviceId, Nic]]) -> list[list[DeviceId]]:
    """Return the ids of every port's functions: the MAC, else `<parent>/vf<n>`.

    A MAC that is locally administered (a hypervisor's, or another at every boot), or that two have, is no identity.
    """
    known = list(ports)
    taken = Counter(_identity(function) for _, nic in known for function in nic.vfs)
    taken.update(parent for parent, _ in known)
    return [
        [
            DeviceId(address)
            if (address := _identity(function)) is not None and taken[address] == 1
            else DeviceId(f"{parent}/vf{function.index}")
            for function in nic.vfs
        ]
        for parent, nic in known
    ]


def _identity(function: Vf) -> str | None:
    return mac.identity(function.mac)
