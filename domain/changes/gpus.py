"""Differences of the `gpus` section: cards that left or came, MIG layouts, driver, video BIOS."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from domain import pci
from domain.availability import known_text
from domain.changes.change import Change, ChangeType, fact_change
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance
from domain.facts import facts
from domain.jsonvalue import JsonValue
from domain.sections import gpu_uuid

_IDENTITY: Final = ("uuid", "index", "name", "serial", "part_number", "pci_bus_id", "vram_mib")
_DRIVER: Final = ("driver_version", "cuda_driver_version")


@dataclass(frozen=True, slots=True)
class GpuPairs:
    """The GPUs of two inventories, matched: the same card may have moved to another index or PCI address."""

    missing: tuple[Gpu, ...]
    added: tuple[Gpu, ...]
    kept: tuple[tuple[Gpu, Gpu], ...]


def is_complete(section: GpusSection) -> bool:
    """Say whether the section lists every GPU, so that one it lacks is gone."""
    return section.enumeration is Enumeration.COMPLETE and "gpus" not in section.unavailable


def pair_gpus(before: Sequence[Gpu], after: Sequence[Gpu]) -> GpuPairs:
    """Match by UUID; where a side has none (all zero, lost, unreadable), by PCI address.

    A GPU with neither cannot be told from another, so it neither leaves nor comes.
    """
    by_uuid = {uuid: gpu for gpu in before if (uuid := gpu_uuid(gpu)) is not None}
    by_place = {place: gpu for gpu in before if (place := pci.canonical(gpu.pci_bus_id)) is not None}
    kept: list[tuple[Gpu, Gpu]] = []
    added: list[Gpu] = []
    taken: set[int] = set()
    # Those with a UUID first: a card that only lost its name must not take another's place.
    for gpu in sorted(after, key=lambda gpu: gpu_uuid(gpu) is None):
        old = by_uuid.get(gpu_uuid(gpu) or "")
        if old is None:
            there = by_place.get(pci.canonical(gpu.pci_bus_id) or "")
            nameless = there is not None and (gpu_uuid(gpu) is None or gpu_uuid(there) is None)
            old = there if nameless else None
        if old is not None and id(old) not in taken:
            taken.add(id(old))
            kept.append((old, gpu))
        elif _is_identified(gpu):
            added.append(gpu)
    missing = [gpu for gpu in before if id(gpu) not in taken and _is_identified(gpu)]
    return GpuPairs(
        missing=tuple(sorted(missing, key=_order)),
        added=tuple(sorted(added, key=_order)),
        kept=tuple(sorted(kept, key=lambda pair: _order(pair[1]))),
    )


def missing_changes(pairs: GpuPairs) -> tuple[Change, ...]:
    """Tell the GPUs that are gone."""
    return tuple(Change(ChangeType.GPU_MISSING, gpu_uuid(gpu), facts(gpu, _IDENTITY), None) for gpu in pairs.missing)


def added_changes(pairs: GpuPairs) -> tuple[Change, ...]:
    """Tell the GPUs that came."""
    return tuple(Change(ChangeType.GPU_ADDED, gpu_uuid(gpu), None, facts(gpu, _IDENTITY)) for gpu in pairs.added)


def mig_changes(before: GpusSection, after: GpusSection, pairs: GpuPairs) -> tuple[Change, ...]:
    """Tell the GPUs whose MIG mode or instances differ; a mode or list that is unknown on a side is silence."""
    old_silent, new_silent = _silent_layouts(before), _silent_layouts(after)
    changes = []
    for old, new in pairs.kept:
        silent = id(old) in old_silent or id(new) in new_silent
        if not silent and _layout_differs(old, new):
            changes.append(
                Change(ChangeType.MIG_LAYOUT_CHANGED, gpu_uuid(new) or gpu_uuid(old), _layout(old), _layout(new))
            )
    return tuple(changes)


def driver_changes(before: GpusSection, after: GpusSection) -> tuple[Change, ...]:
    """Tell another driver or CUDA version."""
    return fact_change(ChangeType.DRIVER_CHANGED, before, after, _DRIVER)


def vbios_changes(pairs: GpuPairs) -> Iterable[Change]:
    """Tell another video BIOS; a virtual GPU's is all zeros, which is unknown."""
    for old, new in pairs.kept:
        if _has_vbios(old) and _has_vbios(new):
            device_id = gpu_uuid(new) or gpu_uuid(old)
            yield from fact_change(ChangeType.FIRMWARE_CHANGED, old, new, ("vbios",), device_id)


def _is_identified(gpu: Gpu) -> bool:
    return gpu_uuid(gpu) is not None or pci.canonical(gpu.pci_bus_id) is not None


def _order(gpu: Gpu) -> tuple[str, str]:
    return gpu_uuid(gpu) or "", pci.canonical(gpu.pci_bus_id) or ""


def _has_vbios(gpu: Gpu) -> bool:
    version = known_text(gpu.vbios)
    return version is not None and not set(version) <= {"0", "."}


def _silent_layouts(section: GpusSection) -> frozenset[int]:
    """Return the identities of the section's GPU objects whose MIG layout it does not know."""
    return frozenset(
        id(gpu)
        for index, gpu in enumerate(section.gpus)
        if gpu.mig_mode is None or gpu.mig_mode.current is None or f"gpus.{index}.migInstances" in section.unavailable
    )


def _layout_differs(before: Gpu, after: Gpu) -> bool:
    """Compare mode, instances and, where both sides know it, profiles. UUID and memory follow from those."""
    if _mode(before) is not _mode(after):
        return True
    old = {(mig.gi, mig.ci): mig.profile for mig in before.mig_instances}
    new = {(mig.gi, mig.ci): mig.profile for mig in after.mig_instances}
    return old.keys() != new.keys() or any(_profiles_differ(old[place], new[place]) for place in old)


def _profiles_differ(before: str | None, after: str | None) -> bool:
    old, new = known_text(before), known_text(after)
    return old is not None and new is not None and old != new


def _mode(gpu: Gpu) -> bool | None:
    return gpu.mig_mode.current if gpu.mig_mode is not None else None


def _layout(gpu: Gpu) -> JsonValue:
    instances = sorted(gpu.mig_instances, key=_instance_place)
    return {"mode": _mode(gpu), "instances": [facts(mig, ("gi", "ci", "profile", "memory_mib")) for mig in instances]}


def _instance_place(mig: MigInstance) -> tuple[int, int]:
    return mig.gi, mig.ci
