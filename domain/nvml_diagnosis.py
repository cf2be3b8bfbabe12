"""What `diag.nvml` finds wrong with the GPUs of a machine, from one look at them through NVML (rule 10).

Only what is known fails a check: a part that lacks a fact by nature passes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.documents.gpus import Enumeration, Gpu, GpusSection, LinkWidth


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


def diagnose(section: GpusSection, expected: int | None) -> Diagnosis:
    """Check what NVML told; `expected` is how many GPUs there are to be, None for as many as there are.

    Checks: nvml.init, gpu.count, ecc.uncorrectable, row-remap.pending, row-remap.failure, pcie.link.
    """
    if section.enumeration is Enumeration.UNAVAILABLE:
        return Diagnosis(0, (FailedCheck("nvml.init", section.reason or "NVML does not answer"),))
    reached = [gpu for gpu in section.gpus if not gpu.lost]
    found = (
        *_count(section, len(reached), expected),
        *(failed for gpu in reached for failed in _of_gpu(gpu)),
    )
    return Diagnosis(len(reached), found)


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
            yield FailedCheck("pcie.link", f"{current} of {most} lanes", name)
