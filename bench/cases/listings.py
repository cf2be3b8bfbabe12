"""Listings of tools, turned back into the files of sysfs that they tell of; what they do not tell is not there."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent.gpus.sysfs import nvidia_gpu_addresses
from agent.host.disks import collect_disks
from agent.host.nics import collect_nics
from agent.host.system import collect_system
from bench.cases.answer import Concluded
from bench.cases.gpus import NODE
from bench.cases.host import collected
from bench.cases.identifiers import key_lines
from bench.cases.lines import aligned, section_facts, unknown
from bench.cases.source import MemorySource
from domain.device import Device
from domain.devices import devices_of
from domain.diff import diff
from domain.documents.disks import DisksSection
from domain.documents.document import Section

_SECTOR_BYTES: Final = 512
_VIRTUAL: Final = re.compile(r"loop\d+|ram\d+|zram\d+|md\d+|dm-\d+|nbd\d+")
_NVME: Final = re.compile(r"(nvme\d+)n\d+")
_LSPCI: Final = re.compile(r"(\S+) .*?\[([0-9a-f]{4})\]: .*\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_DMI_FILES: Final[Mapping[tuple[str, str], str]] = {
    ("System Information", "Manufacturer"): "sys_vendor",
    ("System Information", "Product Name"): "product_name",
    ("System Information", "Serial Number"): "product_serial",
    ("System Information", "UUID"): "product_uuid",
    ("Base Board Information", "Product Name"): "board_name",
    ("Base Board Information", "Serial Number"): "board_serial",
    ("Chassis Information", "Serial Number"): "chassis_serial",
    ("BIOS Information", "Vendor"): "bios_vendor",
    ("BIOS Information", "Version"): "bios_version",
    ("BIOS Information", "Release Date"): "bios_date",
}
_DISK_FACTS: Final = ("name", "wwn", "serial", "namespace", "model", "sizeBytes", "transport")

Entry = Mapping[str, Any]


def lsblk(files: Sequence[Path]) -> Concluded:
    """Read `lsblk --json`."""
    entries = {str(entry["name"]): entry for entry in _whole_devices(json.loads(files[0].read_bytes())["blockdevices"])}
    return _disks("lsblk", [_from_lsblk(place, entry) for place, entry in enumerate(entries.values())])


def nvme_list(files: Sequence[Path]) -> Concluded:
    """Read `nvme list -o json`."""
    listed = json.loads(files[0].read_bytes())["Devices"]
    if any("DevicePath" not in entry for entry in listed):
        listed = list(_namespaces(listed))
    return _disks("nvme list", [_from_nvme(entry) for entry in listed])


def dmidecode(files: Sequence[Path]) -> Concluded:
    """Read the output of dmidecode."""
    title = ""
    tree: dict[str, bytes] = {}
    for line in files[0].read_text(encoding="utf-8").splitlines():
        name, separator, value = line.strip().partition(": ")
        if not line.startswith((" ", "\t")):
            title = line.strip()
        elif separator and (title, name) in _DMI_FILES:
            tree.setdefault(f"/sys/class/dmi/id/{_DMI_FILES[title, name]}", f"{value}\n".encode())
    section, notes = collected("system", MemorySource(tree), collect_system)
    lines = [*section_facts(section, notes.missing), *key_lines({"system": section})]
    return Concluded("system collector, sysfs built from the listing", lines)


def infiniband(files: Sequence[Path]) -> Concluded:
    """Read the attributes below /sys/class/infiniband, one `path: content` a line."""
    told = (line.partition(": ") for line in files[0].read_text(encoding="utf-8").splitlines() if line.strip())
    tree = {f"/sys/class/infiniband/{path}": f"{content}\n".encode() for path, _, content in told}
    section, notes = collected("nics", MemorySource(tree), lambda host, inner: collect_nics(host, {}, inner))
    devices = devices_of(NODE, {"nics": section})
    rows = [("device", "firmware", "ports"), *(_adapter(device) for device in devices)]
    why = sorted({f"not known: {path} ({gap.detail})" for path, gap in notes.missing.items() if path == "nics"})
    reasons = sorted({f"{path.split('.', 2)[-1]} ({why.value})" for path, why in section.unavailable.items()})
    lines = [*aligned(rows), *why, f"not known of some or all: {', '.join(reasons)}"]
    return Concluded("nics collector and devices_of, sysfs built from the listing", lines)


def lspci(files: Sequence[Path]) -> Concluded:
    """Read `lspci -nn`."""
    with TemporaryDirectory() as folder:
        listed = [match for line in files[0].read_text(encoding="utf-8").splitlines() if (match := _LSPCI.match(line))]
        for address, device_class, vendor, device in (match.groups() for match in listed):
            place = Path(folder) / "bus/pci/devices" / (address if address.count(":") > 1 else f"0000:{address}")
            place.mkdir(parents=True)
            for name, value in (("class", f"{device_class}00"), ("vendor", vendor), ("device", device)):
                (place / name).write_text(f"0x{value}\n", encoding="ascii")
        found = nvidia_gpu_addresses(Path(folder))
    lines = [f"{len(listed)} functions listed, {len(found)} are NVIDIA GPUs", *found]
    return Concluded("nvidia_gpu_addresses, sysfs built from the listing", lines)


def _whole_devices(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield what has a folder of its own in /sys/block: everything but partitions."""
    for entry in entries:
        if entry["type"] != "part":
            yield entry
        yield from _whole_devices(entry.get("children", ()))


def _namespaces(listed: Iterable[Entry]) -> Iterator[Entry]:
    """Flatten the form of nvme-cli 2.11: subsystems, controllers, namespaces."""
    for host in listed:
        for subsystem in host.get("Subsystems", ()):
            for controller in subsystem.get("Controllers", ()):
                for namespace in (*subsystem.get("Namespaces", ()), *controller.get("Namespaces", ())):
                    yield {**controller, **namespace, "DevicePath": f"/dev/{namespace['NameSpace']}"}


def _from_nvme(entry: Entry) -> Entry:
    return {
        "name": entry["DevicePath"],
        "size": entry.get("PhysicalSize"),
        "serial": entry.get("SerialNumber"),
        "model": entry.get("ModelNumber"),
        "nsid": entry.get("NSID", entry.get("NameSpace")),
    }


def _from_lsblk(place: int, entry: Entry) -> Entry:
    # A volume is listed by the name of its mapping; the kernel calls it dm-<number>.
    mapped = entry["type"] in {"lvm", "crypt", "dm", "mpath"}
    return {**entry, "name": f"dm-{place}"} if mapped else entry


def _disks(tool: str, entries: Sequence[Entry]) -> Concluded:
    section = _disks_section(entries)
    devices = devices_of(NODE, {"disks": section})
    names = [str(entry["name"]) for entry in entries]
    rotated = [{**entry, "name": name} for entry, name in zip(entries, _rotated(names), strict=True)]
    changes = diff({"disks": section}, {"disks": _disks_section(rotated)})
    lines = [
        f"{len(entries)} whole block devices listed, {len(devices)} are disks",
        *aligned([("id", *_DISK_FACTS), *(_disk_row(device) for device in devices)]),
        f"names of disks swapped: {f'CHANGES: {changes}' if changes else 'no change'}",
    ]
    left_out = "" if all(isinstance(entry.get("size"), int) for entry in entries) else "; rounded sizes left out"
    return Concluded(f"disks collector and devices_of, sysfs built from {tool}{left_out}", lines)


def _rotated(names: Sequence[str]) -> list[str]:
    """Give each NVMe disk the name of the next, and each other disk too; the rest keeps its own."""
    given = dict(zip(names, names, strict=True))
    for pattern in (r"(/dev/)?nvme\d+n\d+", r"(/dev/)?sd[a-z]+"):
        kind = [name for name in names if re.fullmatch(pattern, name)]
        given |= dict(zip(kind, (*kind[1:], *kind[:1]), strict=True))
    return [given[name] for name in names]


def _disks_section(entries: Iterable[Entry]) -> Section:
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for entry in entries:
        name = str(entry["name"]).removeprefix("/dev/")
        links[f"/sys/block/{name}"] = _device_path(name)
        files |= {f"/sys/block/{name}/{file}": content for file, content in _attributes(name, entry)}
    source = MemorySource(files, links)
    section, _ = collected("disks", source, lambda host, notes: DisksSection(disks=collect_disks(host, notes)))
    return section


def _device_path(name: str) -> str:
    """Return a path that tells no more than the name does: no listing has the bus."""
    nvme = _NVME.fullmatch(name)
    if nvme:
        return f"../devices/nvme/{nvme[1]}/{name}"
    if name.startswith("vd"):
        return f"../devices/virtio0/block/{name}"
    return f"../devices/virtual/block/{name}" if _VIRTUAL.fullmatch(name) else f"../devices/block/{name}"


def _attributes(name: str, entry: Entry) -> Iterator[tuple[str, bytes]]:
    size, serial, wwn = entry.get("size"), entry.get("serial"), entry.get("wwn")
    told = {
        "size": size // _SECTOR_BYTES if isinstance(size, int) else None,
        "queue/rotational": None if entry.get("rota") is None else int(entry["rota"]),
        "nsid": entry.get("nsid"),
        "serial" if name.startswith("vd") else "device/serial": serial,
        "wwid" if wwn is not None and "." in wwn else "device/wwid": re.sub("^0x", "naa.", wwn) if wwn else None,
        "device/vendor": entry.get("vendor"),
        "device/model": entry.get("model"),
    }
    yield from ((file, f"{value}\n".encode()) for file, value in told.items() if value is not None)


def _disk_row(device: Device) -> tuple[str, ...]:
    def said(fact: str) -> str:
        value = device.attributes.get(fact)
        why = device.not_known.get(fact)
        # The model of NVMe has namespaces only, so a missing one is no unknown.
        return str(value) if value is not None else unknown(why.value) if why else "-"

    return (device.id, *map(said, _DISK_FACTS))


def _adapter(device: Device) -> tuple[str, str, str]:
    rdma: Any = device.attributes["rdma"]
    ports = (
        f"{port['port']}: {port.get('linkLayer', 'unknown')} {port.get('rateGbps', 'unknown')} Gbit/s"
        for port in rdma.get("ports", ())
    )
    return device.id, str(device.attributes.get("firmware", "unknown")), ", ".join(ports)
