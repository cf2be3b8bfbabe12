"""The disks of the `disks` section: what is a disk, and what identifies it.

Partitions, mappings (dm, md), loop, RAM and network block devices, floppies, optical drives and the virtual media of
management controllers are no disks; the paths of a multipath disk are one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from agent.host.answers import Cause, Missing, Notes, first_known, known
from agent.host.files import Source, names_in, number, raw_text, text
from agent.host.pci_path import is_on_usb, is_virtual, last_address, last_raw_address
from domain.documents.disks import Disk

_BLOCK: Final = "/sys/block"
_SECTOR_BYTES: Final = 512  # the unit of `size`, whatever the sectors of the disk
_NOT_DISKS: Final = re.compile(
    r"(loop|ram|zram|md|dm-|fd|sr|scd|nbd|rbd|drbd|mtdblock|ubiblock)\d+|mmcblk\d+(boot|rpmb).*"
)
_NVME_SUBSYSTEM: Final = "/devices/virtual/nvme-subsystem/"
_CONTROLLER: Final = re.compile(r"nvme\d+")
_NAMESPACE_NAME: Final = re.compile(r"nvme\d+n(\d+)")
_SCSI_ADDRESS: Final = re.compile(r"\d+:(\d+:\d+:\d+)")
_VIRTUAL_MEDIA: Final = re.compile(
    r"idrac|virtual (floppy|media|cd|cdrom|hdisk|flash|hd\b)|\bami virtual|aten virtual|lcdrive|\brmm\b|imm virtual",
    re.IGNORECASE,
)
_WORLD_WIDE: Final = re.compile(r"(naa|eui|uuid)\.([0-9a-f-]+)")
_VENDORS_OF_PROTOCOL: Final = frozenset({"ATA", "NVMe"})
_PAGE_80_HEADER_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class _Path:
    """One way to a disk: its document, where it leads, and what it does not say."""

    disk: Disk
    target: str
    notes: Notes

    @property
    def same_disk_key(self) -> tuple[object, ...]:
        """Equal for two paths to one disk, and for nothing else."""
        disk = self.disk
        if disk.wwn is not None:
            return ("wwn", disk.wwn, disk.serial, disk.namespace, disk.size_bytes)
        if self.target and disk.serial is not None:
            # A target's default serials are shared by all its kind: only the same unit of the same target is one disk.
            return ("unit", self.target, disk.serial, disk.size_bytes)
        return ("name", disk.name)

    @property
    def order(self) -> tuple[str, ...]:
        """Identity first: kernel names swap between boots."""
        disk = self.disk
        return (disk.wwn or "", disk.serial or "", f"{disk.namespace or 0:010}", disk.bus_path or "", disk.name)


def collect_disks(source: Source, notes: Notes) -> tuple[Disk, ...]:
    """Collect the disks, ordered by identity."""
    names = notes.take("disks", source.entries(_BLOCK)) or ()
    paths: dict[tuple[object, ...], _Path] = {}
    for path in sorted((path for name in names for path in _paths(source, name)), key=lambda path: path.order):
        paths.setdefault(path.same_disk_key, path)
    for index, path in enumerate(paths.values()):
        notes.adopt(f"disks.{index}", path.notes)
    return tuple(path.disk for path in paths.values())


def _paths(source: Source, name: str) -> Iterator[_Path]:
    folder = f"{_BLOCK}/{name}"
    link = source.link(folder)
    if _NOT_DISKS.fullmatch(name) or isinstance(link, Missing) or (is_virtual(link) and _NVME_SUBSYSTEM not in link):
        return
    size = number(source, f"{folder}/size")
    hidden = text(source, f"{folder}/hidden") == "1"  # one path of an NVMe disk that the kernel joins itself
    if size == 0 or hidden or _is_virtual_media(source, folder):
        return
    notes = Notes()
    device_path = _hardware_path(source, folder, link)
    address = last_address(device_path)
    namespace = _namespace(source, name)
    disk = Disk(
        name=name,
        wwn=notes.take("wwn", _wwn(source, folder)),
        serial=notes.take("serial", _serial(source, folder)),
        namespace=namespace,
        model=notes.take("model", _model(source, folder)),
        size_bytes=notes.take("sizeBytes", size if isinstance(size, Missing) else size * _SECTOR_BYTES),
        rotational=notes.take("rotational", _rotational(source, folder)),
        transport=notes.take("transport", _transport(source, name, device_path)),
        pci_bus_id=notes.take("pciBusId", address or Missing(Cause.ABSENT, f"{name} is not on a PCI bus")),
        bus_path=notes.take("busPath", _bus_path(source, device_path, namespace)),
    )
    yield _Path(disk, _target(source, device_path), notes)


def _is_virtual_media(source: Source, folder: str) -> bool:
    words = [raw_text(source, f"{folder}/device/{name}") for name in ("vendor", "model")]
    description = " ".join(word.strip() for word in words if not isinstance(word, Missing))
    return _VIRTUAL_MEDIA.search(description) is not None


def _hardware_path(source: Source, folder: str, link: str) -> str:
    """Return the path of the hardware; an NVMe subsystem with several controllers is under its first one."""
    if _NVME_SUBSYSTEM not in link:
        return link
    for name in names_in(source, f"{folder}/device"):
        if _CONTROLLER.fullmatch(name):
            controller = source.link(f"/sys/class/nvme/{name}")
            if not isinstance(controller, Missing):
                return controller
    return link


def _namespace(source: Source, name: str) -> int | None:
    found = _NAMESPACE_NAME.fullmatch(name)
    if found is None:
        return None  # no such thing outside of NVMe
    told = number(source, f"{_BLOCK}/{name}/nsid")
    return int(found[1]) if isinstance(told, Missing) else told


def _wwn(source: Source, folder: str) -> str | Missing:
    return first_known(
        (
            _world_wide(text(source, f"{folder}/wwid")),
            _world_wide(text(source, f"{folder}/device/wwid")),
            _world_wide(_prefixed("uuid.", text(source, f"{folder}/uuid"))),
            _world_wide(_prefixed("eui.", text(source, f"{folder}/nguid"))),
            _world_wide(_prefixed("eui.", text(source, f"{folder}/eui"))),
        )
    )


def _prefixed(kind: str, content: str | Missing) -> str | Missing:
    return content if isinstance(content, Missing) else kind + content.replace(" ", "").replace("-", "")


def _world_wide(content: str | Missing) -> str | Missing:
    """Return `naa.…`, `eui.…` or `uuid.…` in lower case.

    `nvme.<vendor>-<serial>-<model>-<namespace>` and `t10.…` are made of model and serial by the kernel or the disk:
    they change form with the kernel and say nothing that serial and namespace do not.
    """
    if isinstance(content, Missing):
        return content
    found = _WORLD_WIDE.fullmatch(content.lower().replace(" ", ""))
    digits = found[2].replace("-", "") if found else ""
    if found is None or not digits.strip("0") or not digits.strip("f"):
        return Missing(Cause.BLANK, f"{content!r} is no world-wide name")
    return f"{found[1]}.{digits}"


def _serial(source: Source, folder: str) -> str | Missing:
    return first_known(
        (
            _believable(f"{folder}/device/serial", text(source, f"{folder}/device/serial")),
            _believable(f"{folder}/device/vpd_pg80", _page_80(source, f"{folder}/device/vpd_pg80")),
            _believable(f"{folder}/serial", text(source, f"{folder}/serial")),
        )
    )


def _page_80(source: Source, path: str) -> str | Missing:
    """Read the unit serial number page (SPC-4, 7.8.15): four bytes of header, then the serial."""
    page = source.read(path)
    if isinstance(page, Missing):
        return page
    size = int.from_bytes(page[2:_PAGE_80_HEADER_BYTES], "big")
    serial = page[_PAGE_80_HEADER_BYTES : _PAGE_80_HEADER_BYTES + size]
    return known(path, serial.decode("ascii", "replace").replace("\0", ""))


def _believable(place: str, serial: str | Missing) -> str | Missing:
    """Refuse what stands for a serial: one character over and over."""
    if isinstance(serial, Missing) or len(set(serial)) > 1:
        return serial
    return Missing(Cause.BLANK, f"{place} says {serial!r}: a placeholder")


def _model(source: Source, folder: str) -> str | Missing:
    model = first_known((text(source, f"{folder}/device/model"), text(source, f"{folder}/device/name")))
    vendor = text(source, f"{folder}/device/vendor")
    # The inquiry's vendor is the disk's maker, except where it names the protocol behind a bridge or is a PCI id.
    if isinstance(model, Missing) or isinstance(vendor, Missing) or vendor in _VENDORS_OF_PROTOCOL:
        return model
    return model if vendor.startswith("0x") or model.startswith(vendor) else f"{vendor} {model}"


def _rotational(source: Source, folder: str) -> bool | Missing:
    flag = number(source, f"{folder}/queue/rotational")
    return flag if isinstance(flag, Missing) else flag == 1


def _transport(source: Source, name: str, path: str) -> str | Missing:
    if name.startswith("nvme"):
        carriers = (
            text(source, f"/sys/class/nvme/{part}/transport") for part in path.split("/") if _CONTROLLER.fullmatch(part)
        )
        carrier = first_known(carriers)
        return "nvme" if isinstance(carrier, Missing) or carrier == "pcie" else f"nvme-{carrier}"
    marks = (
        ("usb", is_on_usb(path)),
        ("mmc", name.startswith("mmcblk")),
        ("virtio", re.search(r"/virtio\d+/", path)),
        ("sata", re.search(r"/ata\d+/", path)),
        ("iscsi", re.search(r"/session\d+/", path)),
        ("fc", "/rport-" in path),
        ("sas", "/end_device-" in path),
        ("xen", "/vbd-" in path),
        ("pmem", name.startswith("pmem")),
        ("scsi", re.search(r"/host\d+/", path)),
    )
    return next((transport for transport, holds in marks if holds), Missing(Cause.BLANK, f"no known bus in {path}"))


def _target(source: Source, path: str) -> str:
    session = next((part for part in path.split("/") if re.fullmatch(r"session\d+", part)), None)
    if session is None:
        return ""
    name = text(source, f"/sys/class/iscsi_session/{session}/targetname")
    unit = next((part for part in path.split("/") if _SCSI_ADDRESS.fullmatch(part)), "")
    return "" if isinstance(name, Missing) else f"{name} unit {unit.rsplit(':', 1)[-1]}"


def _bus_path(source: Source, path: str, namespace: int | None) -> str | Missing:
    """Write the place as udev's ID_PATH does: positions on a bus, none of the numbers given in order of discovery."""
    parts = path.split("/")
    start = last_raw_address(path)
    platform = next((after for part, after in pairwise(parts) if part == "platform"), None)
    places = [f"pci-{start}"] if start else [f"platform-{platform}"] if platform else []
    for part in parts:
        scsi = _SCSI_ADDRESS.fullmatch(part)
        if re.fullmatch(r"ata\d+", part):
            port = text(source, f"/sys/class/ata_port/{part}/port_no")
            places += [] if isinstance(port, Missing) else [f"ata-{port}"]
        elif re.fullmatch(r"\d+-[\d.]+:\d+\.\d+", part):
            places.append(f"usb-{part.split('-', 1)[1]}")
        elif scsi:
            places.append(f"scsi-{scsi[1]}")
    if not places:
        return Missing(Cause.BLANK, f"no known bus in {path}")  # a namespace's number alone is no place
    return "-".join(places if namespace is None else [*places, f"nvme-{namespace}"])
