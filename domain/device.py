"""A device: a unit of hardware with a stable id."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from domain.availability import Availability
from domain.documents.document import Section
from domain.ids import DeviceId, NodeId
from domain.jsonvalue import JsonValue

MIB_PER_GIB: Final = 1024
PART_OF: Final = "/(s[0-9]+|gi[0-9]+/ci[0-9]+|vf[0-9]+)$"
"""What the id of a slot, a MIG instance or a function adds to its whole's, for Python and PostgreSQL."""
_NOT_IN_ID: Final = re.compile(r"[^A-Za-z0-9._:@-]+")
_PART_LENGTH_MAX: Final = 128
_DIGEST_LENGTH: Final = 16


class DeviceClass(StrEnum):
    """What a device is."""

    GPU = "gpu"
    GPU_MIG = "gpu.mig"
    GPU_SLOT = "gpu.slot"
    NIC = "nic"
    NIC_VF = "nic.vf"
    DISK = "disk"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as inventory sees it.

    `bookable` says that it is an atom; whether it may be booked now also depends on `healthy` and `missing`: a
    `missing` one is gone, or its pool no longer has it, and stays only until its bookings end.
    `attributes` holds what only devices of its class have, by names as in the sections; `not_known` names the facts
    without a value and why. `index`, `pci_bus_id` and `numa_node` may change at every boot.
    """

    id: DeviceId
    node_id: NodeId
    device_class: DeviceClass
    parent_id: DeviceId | None = None
    bookable: bool = False
    healthy: bool = True
    missing: bool = False
    partition_pending: bool = False
    gpu_product: str | None = None
    gpu_model: str | None = None
    vram_gib: float | None = None
    index: int | None = None
    pci_bus_id: str | None = None
    numa_node: int | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    driver_version: str | None = None
    mig_capable: bool | None = None
    nvlink_peers: tuple[DeviceId, ...] = ()
    fabric_cluster: str | None = None
    fabric_clique: str | None = None
    attributes: Mapping[str, JsonValue] = field(default_factory=dict)
    not_known: Mapping[str, Availability] = field(default_factory=dict)


COLUMNS: Final[Mapping[str, str]] = {
    "gpuProduct": "gpu_product",
    "gpuModel": "gpu_model",
    "vramGiB": "vram_gib",
    "index": "index",
    "pciBusId": "pci_bus_id",
    "numaNode": "numa_node",
    "architecture": "architecture",
    "computeCapability": "compute_capability",
    "driverVersion": "driver_version",
    "migCapable": "mig_capable",
    "nvlinkPeers": "nvlink_peers",
    "fabricCluster": "fabric_cluster",
    "fabricClique": "fabric_clique",
}
"""The facts that are fields of a device, by their names in `not_known`; the others are attributes."""


def place_id(node_id: NodeId, device_class: DeviceClass, place: str) -> DeviceId:
    """Return the id of a device that is identified only within its node, such as by its PCI address."""
    return DeviceId(f"{node_id}/{device_class.value}/{id_part(place)}")


def id_part(text: str) -> str:
    """Bring a text into the characters and the length of a part of an id."""
    name = _NOT_IN_ID.sub("-", text)
    if len(name) <= _PART_LENGTH_MAX:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: _PART_LENGTH_MAX - _DIGEST_LENGTH - 1]}-{digest}"


def is_place_id(device_id: DeviceId, node_id: NodeId) -> bool:
    """Say whether the id holds only within its node."""
    return device_id.startswith(f"{node_id}/")


def whole_by_id(device_id: DeviceId) -> DeviceId | None:
    """Return what a slot, a MIG instance or a function is a part of, by its id alone; None where that does not say."""
    whole = re.sub(PART_OF, "", device_id)
    return DeviceId(whole) if whole != device_id else None


def has_value(device: Device, name: str) -> bool:
    """Say whether the device has a value for a fact named as in `not_known`, such as `vramGiB` or `migMode.pending`."""
    if name in COLUMNS:
        return getattr(device, COLUMNS[name]) not in (None, ())
    return fact(device, name) is not None


def fact(device: Device, path: str) -> JsonValue:
    """Return the attribute at a path such as `migMode.pending`, or None."""
    value: JsonValue = device.attributes
    for name in path.split("."):
        # Not any Mapping: abstract classes make this a fleet's most expensive question.
        value = value.get(name) if isinstance(value, dict) else None
    return value


def word(device: Device, path: str) -> str | None:
    """Return a word of a fixed vocabulary in its one spelling: `In Progress` is `in_progress`."""
    value = fact(device, path)
    return "_".join(value.casefold().split()) if isinstance(value, str) else None


def numbers(device: Device, path: str) -> list[int]:
    """Return a list of numbers, empty where there is none."""
    value = fact(device, path)
    return value if isinstance(value, list) else []


def drop_known(device: Device) -> Device:
    """Name no fact as unknown that has a value."""
    unknown = {fact: why for fact, why in device.not_known.items() if not has_value(device, fact)}
    return device if len(unknown) == len(device.not_known) else replace(device, not_known=unknown)


def not_known_by_item(section: Section, items: str) -> dict[str, dict[str, Availability]]:
    """Sort the section's unavailable facts (`gpus.3.serial`) by the item they are of: `{"3": {"serial": …}}`."""
    sorted_facts: dict[str, dict[str, Availability]] = {}
    for path, availability in section.unavailable.items():
        head, _, rest = path.partition(".")
        index, _, fact = rest.partition(".")
        if head == items and fact:
            sorted_facts.setdefault(index, {})[fact] = availability
    return sorted_facts
