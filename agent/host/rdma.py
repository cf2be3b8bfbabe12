"""RDMA devices: identity and ports, as sysfs lists them, which works where the verbs tools fail."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.host.answers import Cause, Missing, Notes
from agent.host.files import Source, names_in, text
from agent.host.pci_path import is_virtual, last_raw_address
from domain.documents.nics import AttachedFabric, Rdma, RdmaPort

_CLASS: Final = "/sys/class/infiniband"
_RATE: Final = re.compile(r"([\d.]+) Gb/sec")
_ACTIVE: Final = "ACTIVE"
_GUID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """One RDMA device with its place, and the notes on what it does not say."""

    name: str
    device_path: str
    netdevs: tuple[str, ...]
    firmware: str | Missing
    document: Rdma
    notes: Notes


def rdma_devices(source: Source) -> tuple[RdmaDevice, ...]:
    """Return the hardware devices by name; one that vanishes while it is read still stands with what is known.

    Software devices (rxe, siw), virtual functions and sub-functions are none: they follow workloads.
    """
    links = {name: source.link(f"{_CLASS}/{name}") for name in names_in(source, _CLASS)}
    return tuple(
        _device(source, name, "" if isinstance(link, Missing) else link)
        for name, link in links.items()
        if not _is_left_out(source, name, link)
    )


def _is_left_out(source: Source, name: str, link: str | Missing) -> bool:
    soft = not isinstance(link, Missing) and (is_virtual(link) or ".sf." in link)
    return soft or source.exists(f"{_CLASS}/{name}/device/physfn")


def attached_fabrics(
    configured: Mapping[str, tuple[str, ...]], devices: tuple[RdmaDevice, ...]
) -> tuple[AttachedFabric, ...]:
    """Return the fabrics that the operator named, each with the rate of its slowest active port."""
    fabrics = []
    for name, adapters in sorted(configured.items()):
        rates = [
            port.rate_gbps
            for device in devices
            if device.name in adapters
            for port in device.document.ports
            if port.rate_gbps is not None
        ]
        fabrics.append(AttachedFabric(name=name, adapters=tuple(sorted(adapters)), rate_gbps=min(rates, default=None)))
    return tuple(fabrics)


def _device(source: Source, name: str, device_path: str) -> RdmaDevice:
    folder = f"{_CLASS}/{name}"
    notes = Notes()
    ports = []
    for index, port in enumerate(sorted(int(port) for port in names_in(source, f"{folder}/ports") if port.isdigit())):
        inner = Notes()
        ports.append(_port(source, f"{folder}/ports/{port}", port, inner))
        notes.adopt(f"ports.{index}", inner)
    document = Rdma(
        device=name,
        node_guid=notes.take("nodeGuid", _guid(f"{folder}/node_guid", text(source, f"{folder}/node_guid"))),
        ports=tuple(ports),
    )
    return RdmaDevice(
        name=name,
        device_path=device_path,
        netdevs=names_in(source, f"{folder}/device/net"),
        firmware=text(source, f"{folder}/fw_ver"),
        document=document,
        notes=notes,
    )


def _port(source: Source, folder: str, port: int, notes: Notes) -> RdmaPort:
    return RdmaPort(
        port=port,
        guid=notes.take("guid", _guid(f"{folder}/gids/0", text(source, f"{folder}/gids/0"))),
        link_layer=notes.take("linkLayer", text(source, f"{folder}/link_layer")),
        rate_gbps=notes.take("rateGbps", _rate(source, folder)),
    )


def _guid(place: str, content: str | Missing) -> str | Missing:
    """Return the last eight bytes in the form of the InfiniBand tools: `0x` and 16 digits."""
    if isinstance(content, Missing):
        return content
    digits = content.replace(":", "").removeprefix("0x").lower()[-_GUID_DIGITS:]
    if len(digits) < _GUID_DIGITS or not digits.strip("0"):
        return Missing(Cause.BLANK, f"{place} says {content!r}: none assigned")
    return f"0x{digits}"


def _rate(source: Source, folder: str) -> int | Missing:
    state = text(source, f"{folder}/state")
    # A port that is down reports the rate of the last try (10 while polling), not its own.
    if not isinstance(state, Missing) and _ACTIVE not in state:
        return Missing(Cause.DENIED, f"{folder}: no rate while the port is {state!r}")
    content = text(source, f"{folder}/rate")
    if isinstance(content, Missing):
        return content
    found = _RATE.match(content)
    return int(float(found[1])) if found else Missing(Cause.FAILED, f"{folder}/rate is not a rate: {content[:40]!r}")


def of_interface(devices: tuple[RdmaDevice, ...], name: str, device_path: str) -> RdmaDevice | None:
    """Return the device whose PCI function the interface sits on."""
    address = last_raw_address(device_path)
    for device in devices:
        if name in device.netdevs or (address is not None and address == last_raw_address(device.device_path)):
            return device
    return None
