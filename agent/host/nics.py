"""The `nics` section: interfaces that are hardware, and the bonds, bridges and VLANs that stand on hardware.

Container links (veth, Calico), taps, dummies, BMC links over USB, representors and sub-functions come and go with
workloads or boots and never enter. Virtual functions are listed with their parent, whichever namespace they are in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from agent.host.answers import Cause, Missing, Notes, first_known, known
from agent.host.files import Fact, Source, Value, basename, names_in, number, raw_text, text
from agent.host.pci_path import is_on_usb, is_virtual, last_address, last_raw_address
from agent.host.rdma import RdmaDevice, attached_fabrics, of_interface, rdma_devices
from domain import pci
from domain.documents.nics import Nic, NicKind, NicsSection, Vf

_NET: Final = "/sys/class/net"
_ETHERNET, _INFINIBAND = "1", "32"  # ARPHRD_* of linux/if_arp.h
_INFINIBAND_IDENTITY_BYTES: Final = 8
_STACKED: Final = {"bond": NicKind.BOND, "bridge": NicKind.BRIDGE, "vlan": NicKind.VLAN}
_REMOVABLE_DRIVERS: Final = frozenset({"cdc_ether", "cdc_ncm", "cdc_subset", "rndis_host", "thunderbolt-net"})
_VF_DRIVERS: Final = frozenset({"iavf", "i40evf", "ixgbevf", "igbvf", "fm10kvf", "hinic3vf", "enicvf"})
_REPRESENTOR: Final = re.compile(r"(c\d+)?pf\d+(vf|sf)\d+")
_VIRTFN: Final = re.compile(r"virtfn(\d+)")


@dataclass(frozen=True, slots=True)
class _Interface:
    name: str
    device_path: str
    device_type: str
    hardware: bool

    @property
    def kind(self) -> NicKind | None:
        """What it is when it stands on others."""
        return _STACKED.get(self.device_type)


def collect_nics(source: Source, fabrics: Mapping[str, tuple[str, ...]], notes: Notes) -> NicsSection:
    """Collect the interfaces by name, and every RDMA device that has none as an entry of its own."""
    names = notes.take("nics", source.entries(_NET))
    interfaces = {name: found for name in names or () if (found := _interface(source, name)) is not None}
    hardware = {name for name, item in interfaces.items() if item.hardware}
    devices = rdma_devices(source)
    nics = _physical_nics(source, [interfaces[name] for name in sorted(hardware)], devices)
    for item in interfaces.values():
        if not item.hardware and item.kind is not None and _stands_on(source, item.name, hardware):
            inner = Notes()
            mac = inner.take("mac", _identity(text(source, f"{_NET}/{item.name}/address")))
            nics.append((Nic(name=item.name, mac=mac, kind=item.kind), inner))
    covered = {nic.rdma.device for nic, _ in nics if nic.rdma is not None}
    nics += [_bare_rdma(source, device) for device in devices if device.name not in covered]
    nics.sort(key=lambda pair: pair[0].name)
    for index, (_, inner) in enumerate(nics):
        notes.adopt(f"nics.{index}", inner)
    return NicsSection(nics=tuple(nic for nic, _ in nics), fabrics=attached_fabrics(fabrics, devices))


def _interface(source: Source, name: str) -> _Interface | None:
    link = source.link(f"{_NET}/{name}")
    if isinstance(link, Missing):
        return None  # bonding_masters is a file
    device_type = _device_type(source, name)
    if is_virtual(link):
        return _Interface(name, link, device_type, hardware=False)
    if _is_left_out(source, name, link):
        return None
    return _Interface(name, link, device_type, hardware=device_type not in _STACKED)


def _device_type(source: Source, name: str) -> str:
    content = raw_text(source, f"{_NET}/{name}/uevent")
    if isinstance(content, Missing):
        return ""
    if source.exists(f"{_NET}/{name}/parent"):
        return "vlan"  # an IPoIB interface of another partition, on the device of its parent
    found = (line.removeprefix("DEVTYPE=") for line in content.splitlines() if line.startswith("DEVTYPE="))
    return next(found, "")


def _is_left_out(source: Source, name: str, device_path: str) -> bool:
    folder = f"{_NET}/{name}"
    driver = basename(source.link(f"{folder}/device/driver"))
    return (
        text(source, f"{folder}/type") not in {_ETHERNET, _INFINIBAND}
        or is_on_usb(device_path)
        or "/netdevsim" in device_path
        or ".sf." in device_path
        or driver in _REMOVABLE_DRIVERS
        or text(source, f"{folder}/device/removable") == "removable"
        or source.exists(f"{folder}/device/physfn")
        or _is_representor(text(source, f"{folder}/phys_port_name"))
    )


def _is_representor(port_name: str | Missing) -> bool:
    return not isinstance(port_name, Missing) and _REPRESENTOR.fullmatch(port_name) is not None


def _stands_on(source: Source, name: str, hardware: set[str], depth: int = 8) -> bool:
    """Say whether a bond, bridge or VLAN reaches hardware through its members (bonds of bridges of VLANs nest)."""
    if depth == 0 or _device_type(source, name) not in _STACKED:
        return False
    folder = f"{_NET}/{name}"
    lower = [entry.removeprefix("lower_") for entry in names_in(source, folder) if entry.startswith("lower_")]
    partition_of = text(source, f"{folder}/parent")
    lower += [] if isinstance(partition_of, Missing) else [partition_of]
    return any(member in hardware or _stands_on(source, member, hardware, depth - 1) for member in lower)


def _physical_nics(
    source: Source, interfaces: list[_Interface], devices: tuple[RdmaDevice, ...]
) -> list[tuple[Nic, Notes]]:
    names = [item.name for item in interfaces]
    functions = {name: indexes for name in names if (indexes := _vf_indexes(source, name))}
    # All interfaces at once: a driver that hangs costs one deadline, not one per interface.
    permanent = source.ask(Fact.PERMANENT_MAC, names)
    firmware = source.ask(Fact.NIC_FIRMWARE, names)
    macs = source.ask(Fact.VF_MACS, functions)
    nics = []
    for item in interfaces:
        notes = Notes()
        nic = _physical(source, item, of_interface(devices, item.name, item.device_path), notes)
        vfs = _vfs(source, item.name, functions[item.name], macs[item.name], notes) if item.name in functions else ()
        own = notes.take("permanentMac", _permanent_mac(source, item.name, permanent[item.name]))
        version = notes.take("firmware", _firmware(item.name, firmware[item.name]))
        nics.append((msgspec.structs.replace(nic, permanent_mac=own, firmware=version, vfs=vfs), notes))
    return nics


def _physical(source: Source, item: _Interface, device: RdmaDevice | None, notes: Notes) -> Nic:
    folder = f"{_NET}/{item.name}"
    driver = basename(source.link(f"{folder}/device/driver"))
    if device is not None:
        notes.adopt("rdma", device.notes)
    address = last_address(item.device_path)
    return Nic(
        name=item.name,
        mac=notes.take("mac", _identity(text(source, f"{folder}/address"))),
        kind=NicKind.VF if driver in _VF_DRIVERS else NicKind.PHYSICAL,
        pci_bus_id=notes.take("pciBusId", address or Missing(Cause.ABSENT, f"{item.name} is not on a PCI bus")),
        driver=notes.take("driver", driver),
        numa_node=notes.take("numaNode", _numa_node(source, f"{folder}/device", item.device_path)),
        rdma=None if device is None else device.document,
    )


def _identity(address: str | Missing) -> str | Missing:
    """Return a MAC, or the port GUID of an InfiniBand address, whose first bytes change with every driver load."""
    if isinstance(address, Missing):
        return address
    parts = address.lower().split(":")
    if not any(part.strip("0") for part in parts):
        return Missing(Cause.BLANK, f"the address is all zeros ({len(parts)} bytes)")
    return ":".join(parts[-_INFINIBAND_IDENTITY_BYTES:] if len(parts) > _INFINIBAND_IDENTITY_BYTES else parts)


def _permanent_mac(source: Source, name: str, asked: Value | Missing) -> str | Missing:
    folder = f"{_NET}/{name}"
    own = asked if isinstance(asked, Missing) else _identity(str(asked))
    if not isinstance(own, Missing):
        return own
    # A bond gives its members one address and keeps their own here.
    kept = _identity(text(source, f"{folder}/bonding_slave/perm_hwaddr"))
    if not isinstance(kept, Missing):
        return kept
    assigned_permanently = text(source, f"{folder}/addr_assign_type") == "0"
    is_member = source.exists(f"{folder}/master")
    return _identity(text(source, f"{folder}/address")) if assigned_permanently and not is_member else own


def _numa_node(source: Source, device: str, device_path: str) -> int | Missing:
    # A virtio device has no node of its own; its PCI function has.
    function = last_raw_address(device_path)
    places = (f"{device}/numa_node", *([f"/sys/bus/pci/devices/{function}/numa_node"] if function else []))
    return first_known([number(source, place) for place in places])


def _firmware(name: str, asked: Value | Missing) -> str | Missing:
    return asked if isinstance(asked, Missing) else known(f"firmware of {name}", str(asked))


def _vf_indexes(source: Source, name: str) -> list[int]:
    matches = map(_VIRTFN.fullmatch, names_in(source, f"{_NET}/{name}/device"))
    return sorted(int(found[1]) for found in matches if found)


def _vfs(source: Source, name: str, indexes: list[int], asked: Value | Missing, notes: Notes) -> tuple[Vf, ...]:
    pairs = {} if isinstance(asked, Missing) else dict(pair.split("=", 1) for pair in str(asked).split(",") if pair)
    vfs = []
    for place, index in enumerate(indexes):
        none = asked if isinstance(asked, Missing) else Missing(Cause.BLANK, f"{name}: function {index} has no MAC yet")
        address = basename(source.link(f"{_NET}/{name}/device/virtfn{index}"))
        canonical = address if isinstance(address, Missing) else pci.canonical(address)
        mac = notes.take(f"vfs.{place}.mac", pairs.get(str(index), none))
        vfs.append(Vf(index=index, mac=mac, pci_bus_id=notes.take(f"vfs.{place}.pciBusId", canonical)))
    return tuple(vfs)


def _bare_rdma(source: Source, device: RdmaDevice) -> tuple[Nic, Notes]:
    notes = Notes()
    notes.adopt("rdma", device.notes)
    folder = f"/sys/class/infiniband/{device.name}/device"
    elsewhere = Missing(Cause.ABSENT, f"{device.name} is not on a PCI bus")
    unseen = Missing(Cause.BLANK, f"the place of {device.name} could not be read")
    address = last_address(device.device_path)
    nic = Nic(
        name=device.name,
        kind=NicKind.PHYSICAL,
        pci_bus_id=notes.take("pciBusId", address or (elsewhere if device.device_path else unseen)),
        driver=notes.take("driver", basename(source.link(f"{folder}/driver"))),
        firmware=notes.take("firmware", device.firmware),
        numa_node=notes.take("numaNode", _numa_node(source, folder, device.device_path)),
        rdma=device.document,
    )
    return nic, notes
