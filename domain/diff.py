"""The differences between two inventories of one node, in the order in which they are told (rule 3).

Silence is not absence: a section that is missing on either side, a GPU enumeration that is not complete on either
side, and a fact that either side does not know yield no change.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from domain.changes import gpus, host, replacements
from domain.changes.change import Change, ChangeType
from domain.documents.cpu import CpuSection
from domain.documents.disks import DisksSection
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.memory import MemorySection
from domain.documents.nics import NicsSection
from domain.documents.os import OsSection
from domain.documents.system import SystemSection
from domain.sections import section_of

__all__ = ["Change", "ChangeType", "diff"]

Kind = TypeVar("Kind", bound=Section)


def diff(before: Mapping[str, Section], after: Mapping[str, Section]) -> tuple[Change, ...]:
    """Compare two sets of decoded sections by name; within a type, changes are sorted by device."""
    order = list(ChangeType)
    return tuple(sorted(_changes(before, after), key=lambda change: order.index(change.type)))


def _changes(before: Mapping[str, Section], after: Mapping[str, Section]) -> Iterator[Change]:
    yield from _compare(before, after, GpusSection, _gpu_changes)
    yield from _compare(before, after, DisksSection, replacements.disk_changes)
    yield from _compare(before, after, NicsSection, replacements.nic_changes)
    yield from _compare(before, after, MemorySection, host.memory_changes)
    yield from _compare(before, after, CpuSection, host.cpu_changes)
    yield from _compare(before, after, SystemSection, host.firmware_changes)
    yield from _compare(before, after, GpusSection, _vbios_changes)
    yield from _compare(before, after, OsSection, host.kernel_changes)


def _compare(
    before: Mapping[str, Section],
    after: Mapping[str, Section],
    kind: type[Kind],
    changes: Callable[[Kind, Kind], Iterable[Change]],
) -> Iterable[Change]:
    old, new = section_of(before, kind), section_of(after, kind)
    return () if old is None or new is None else changes(old, new)


def _gpu_changes(before: GpusSection, after: GpusSection) -> Iterator[Change]:
    if gpus.is_complete(before) and gpus.is_complete(after):
        pairs = gpus.pair_gpus(before.gpus, after.gpus)
        yield from gpus.missing_changes(pairs)
        yield from gpus.added_changes(pairs)
        yield from gpus.mig_changes(before, after, pairs)
        yield from gpus.driver_changes(before, after)


def _vbios_changes(before: GpusSection, after: GpusSection) -> Iterator[Change]:
    if gpus.is_complete(before) and gpus.is_complete(after):
        yield from gpus.vbios_changes(gpus.pair_gpus(before.gpus, after.gpus))
