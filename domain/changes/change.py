"""One difference between two inventories, and the comparison of plain facts."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from domain.documents.document import Document
from domain.facts import facts
from domain.jsonvalue import JsonValue


class ChangeType(StrEnum):
    """What changed, in the order in which changes are told (rule 3); the value is the type of the event."""

    GPU_MISSING = "node.gpu.missing"
    GPU_ADDED = "node.gpu.added"
    MIG_LAYOUT_CHANGED = "node.mig.layout.changed"
    DISK_REPLACED = "node.disk.replaced"
    DRIVER_CHANGED = "node.driver.changed"
    NIC_REPLACED = "node.nic.replaced"
    MEMORY_CHANGED = "node.memory.changed"
    CPU_CHANGED = "node.cpu.changed"
    FIRMWARE_CHANGED = "node.firmware.changed"
    KERNEL_CHANGED = "node.kernel.changed"


@dataclass(frozen=True, slots=True)
class Change:
    """A difference. `before` and `after` are JSON builtins with 64-bit amounts as strings.

    `device_id` is the device's own id (GPU UUID, disk identity, MAC); None when the change is not a device's, or the
    device is known only by its place, which `before` and `after` then name.
    """

    type: ChangeType
    device_id: str | None
    before: JsonValue
    after: JsonValue


def fact_change(
    kind: ChangeType, before: Document, after: Document, names: Iterable[str], device_id: str | None = None
) -> tuple[Change, ...]:
    """Compare the named fields that are known on both sides; the change holds those that differ."""
    names = tuple(names)
    old, new = facts(before, names), facts(after, names)
    differing = [name for name in old if name in new and old[name] != new[name]]
    if not differing:
        return ()
    return (Change(kind, device_id, {name: old[name] for name in differing}, {name: new[name] for name in differing}),)
