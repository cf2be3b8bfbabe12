"""What `diag.nvml` finds wrong with the GPUs of a machine, from one look at them and the faults of this boot (rule 10).

Only what is known fails a check: a part that lacks a fact by nature passes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from domain.availability import Availability
from domain.documents.gpus import Enumeration, Gpu, GpusSection, LinkWidth
from domain.kernel_faults import RECOVERY_CODE, FaultKind
from domain.known_faults import KnownFault
from domain.sections import gpu_uuid

_PCIE: Final = "pcie.link"


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check that failed, of a GPU by its UUID (or its place on the bus) or of the machine."""

    check: str
    reason: str
    gpu: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a look found."""

    gpu_count: int
    failures: tuple[FailedCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures


def diagnose(section: GpusSection, expected: int | None, faults: Iterable[KnownFault] = ()) -> Diagnosis:
    """Check what NVML told; `expected` is how many GPUs there are to be, None for as many as there are.

    Checks: nvml.init, gpu.count, ecc.uncorrectable, row-remap.pending, row-remap.failure, pcie.link, and xid.recent for
    each of the `faults` that tells of a GPU and not of a program.
    """
    recent = tuple(_recent(faults))
    if section.enumeration is Enumeration.UNAVAILABLE:
        return Diagnosis(0, (FailedCheck("nvml.init", section.reason or "NVML does not answer"), *recent))
    reached = [gpu for gpu in section.gpus if not gpu.lost]
    found = (
        *_count(section, len(reached), expected),
        *(failed for gpu in reached for failed in _of_gpu(gpu)),
        *recent,
    )
    return Diagnosis(len(reached), found)


def is_well(section: GpusSection, device_id: str) -> bool:
    """Say whether a GPU is there, answers, and waits for nothing: what a reset is to bring about."""
    for place, gpu in enumerate(section.gpus):
        if gpu_uuid(gpu) == device_id and not gpu.lost:
            failing = any(
                name.startswith(f"gpus.{place}.health") and why is Availability.TEMPORARILY_FAILED
                for name, why in section.unavailable.items()
            )
            return not failing and all(failed.check == _PCIE for failed in _of_gpu(gpu))
    return False


def _recent(faults: Iterable[KnownFault]) -> Iterator[FailedCheck]:
    """Yield the faults of GPUs; a GPU that its driver calls recovered (Xid 154 to 0) and a test's errors are none."""
    for known in sorted(faults, key=lambda known: known.sequence):
        fault = known.fault
        is_told = fault.code == RECOVERY_CODE and not fault.recovery
        is_test = fault.nvlink is not None and fault.nvlink.is_injected
        if fault.kind is not FaultKind.SXID and not (known.is_of_program or is_told or is_test):
            where = known.device_id or fault.place or None
            yield FailedCheck("xid.recent", f"Xid {fault.code} in this boot", where)


def _count(section: GpusSection, reached: int, expected: int | None) -> Iterator[FailedCheck]:
    if section.enumeration is not Enumeration.COMPLETE:
        yield FailedCheck("gpu.count", section.reason or f"only {reached} GPUs answer")
    elif expected is not None and reached != expected:
        yield FailedCheck("gpu.count", f"{reached} GPUs, {expected} are expected")


def _of_gpu(gpu: Gpu) -> Iterator[FailedCheck]:
    name, health = gpu.uuid or gpu.pci_bus_id, gpu.health
    ecc = health.ecc_uncorrectable if health else None
    if ecc is not None and ecc.volatile:
        yield FailedCheck("ecc.uncorrectable", f"{ecc.volatile} since the driver was loaded", name)
    remap = health.row_remap if health else None
    if remap is not None and remap.pending:
        yield FailedCheck("row-remap.pending", "a row remap waits for a reset", name)
    if remap is not None and remap.failure:
        yield FailedCheck("row-remap.failure", "no spare row was left", name)
    match gpu.pcie_link_width:
        case LinkWidth(current=int(current), max=int(most)) if current < most:
            yield FailedCheck(_PCIE, f"{current} of {most} lanes", name)
