"""Differences of the machine itself: memory, processors, firmware, kernel."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from domain.availability import known_text
from domain.changes.change import Change, ChangeType, fact_change
from domain.documents.cpu import CpuSection
from domain.documents.memory import Dimm, MemorySection
from domain.documents.os import OsSection
from domain.documents.system import SystemSection
from domain.facts import facts
from domain.jsonvalue import JsonValue

_CPU: Final = ("arch", "model", "sockets", "cores", "threads")
_FIRMWARE: Final = ("bios_vendor", "bios_version", "bios_date", "bmc_version")
_DIMM: Final = ("locator", "size_bytes", "type", "part_number", "serial")

# What the kernel manages wobbles between boots with firmware reservations and the crash kernel's reserve. One module
# of a machine with 64 equal ones is more than 1.5 % of it; small guests reserve up to half a GiB.
_TOTAL_TOLERANCE_PERCENT: Final = 1
_TOTAL_TOLERANCE_BYTES: Final = 512 * 1024 * 1024


def memory_changes(before: MemorySection, after: MemorySection) -> tuple[Change, ...]:
    """Compare the modules when both sides know them, else the total beyond what firmware and kernel reserve.

    Modules compare by their serials, else by their sizes: locators are renamed by firmware, speeds are trained.
    """
    modules = _comparable_modules(before, after)
    if modules is None:
        return _total_change(before, after)
    old_keys, new_keys = modules
    if Counter(old_keys) == Counter(new_keys):
        return ()
    gone = _without(_dimms(before), old_keys, new_keys)
    came = _without(_dimms(after), new_keys, old_keys)
    return (Change(ChangeType.MEMORY_CHANGED, None, _memory(before, gone), _memory(after, came)),)


def cpu_changes(before: CpuSection, after: CpuSection) -> tuple[Change, ...]:
    """Tell other processors."""
    return fact_change(ChangeType.CPU_CHANGED, before, after, _CPU)


def firmware_changes(before: SystemSection, after: SystemSection) -> tuple[Change, ...]:
    """Tell another BIOS or management controller firmware."""
    return fact_change(ChangeType.FIRMWARE_CHANGED, before, after, _FIRMWARE)


def kernel_changes(before: OsSection, after: OsSection) -> tuple[Change, ...]:
    """Tell another kernel; a rolling distribution's version is no event."""
    return fact_change(ChangeType.KERNEL_CHANGED, before, after, ("kernel",))


def _total_change(before: MemorySection, after: MemorySection) -> tuple[Change, ...]:
    old, new = before.total_bytes, after.total_bytes
    if old is None or new is None:
        return ()
    tolerance = max(_TOTAL_TOLERANCE_BYTES, max(old, new) * _TOTAL_TOLERANCE_PERCENT // 100)
    if abs(new - old) <= tolerance:
        return ()
    return fact_change(ChangeType.MEMORY_CHANGED, before, after, ("total_bytes",))


def _dimms(section: MemorySection) -> tuple[Dimm, ...]:
    """Return the modules; a size of 0 is an empty slot."""
    return () if "dimms" in section.unavailable else tuple(dimm for dimm in section.dimms if dimm.size_bytes != 0)


def _comparable_modules(
    before: MemorySection, after: MemorySection
) -> tuple[Sequence[Hashable], Sequence[Hashable]] | None:
    old, new = _dimms(before), _dimms(after)
    if not old or not new:
        return None
    old_serials, new_serials = [known_text(dimm.serial) for dimm in old], [known_text(dimm.serial) for dimm in new]
    if None not in old_serials and None not in new_serials:
        return old_serials, new_serials
    old_sizes, new_sizes = [dimm.size_bytes for dimm in old], [dimm.size_bytes for dimm in new]
    if None not in old_sizes and None not in new_sizes:
        return old_sizes, new_sizes
    return None


def _without(dimms: Sequence[Dimm], keys: Sequence[Hashable], others: Sequence[Hashable]) -> list[Dimm]:
    """Return the modules that the other side lacks."""
    left = Counter(others)
    only_here = []
    for dimm, key in zip(dimms, keys, strict=True):
        if left[key]:
            left[key] -= 1
        else:
            only_here.append(dimm)
    return only_here


def _memory(section: MemorySection, dimms: Sequence[Dimm]) -> JsonValue:
    return {**facts(section, ("total_bytes",)), "dimms": [facts(dimm, _DIMM) for dimm in dimms]}
