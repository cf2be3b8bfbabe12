"""What diag.nvml finds."""

from dataclasses import replace
from typing import Any

import pytest

from domain.documents.gpus import EccUncorrectable, Enumeration, Gpu, GpuHealth, GpusSection, LinkWidth, RowRemap
from domain.kernel_faults import Fault, FaultKind, NvlinkError
from domain.known_faults import KnownFault
from domain.nvml_diagnosis import diagnose

WELL = Gpu(
    uuid="GPU-1",
    health=GpuHealth(
        row_remap=RowRemap(correctable=2, uncorrectable=1, pending=False, failure=False),
        ecc_uncorrectable=EccUncorrectable(volatile=0, aggregate=7),
    ),
    pcie_link_width=LinkWidth(current=16, max=16),
)


def host(*gpus: Gpu, enumeration: Enumeration = Enumeration.COMPLETE, reason: str | None = None) -> GpusSection:
    return GpusSection(enumeration=enumeration, reason=reason, gpus=gpus)


def checks(section: GpusSection, expected: int | None = None) -> list[tuple[str, str | None]]:
    return [(each.check, each.gpu) for each in diagnose(section, expected).failures]


def test_well_gpus_pass_and_so_does_a_machine_without_any() -> None:
    assert diagnose(host(WELL, Gpu(uuid="GPU-2")), 2).passed
    assert diagnose(host(), None).passed


def test_nvml_that_does_not_answer_is_the_one_thing_that_is_said() -> None:
    section = host(enumeration=Enumeration.UNAVAILABLE, reason="Driver/library version mismatch")
    found = diagnose(section, 8)
    assert not found.passed
    assert [(each.check, each.reason) for each in found.failures] == [("nvml.init", "Driver/library version mismatch")]


def test_another_number_of_gpus_fails_where_a_number_is_expected() -> None:
    assert checks(host(WELL), 2) == [("gpu.count", None)]
    assert checks(host(WELL), None) == []
    lost = Gpu(pci_bus_id="00000000:18:00.0", lost=True)
    assert checks(host(WELL, lost, enumeration=Enumeration.INCOMPLETE)) == [("gpu.count", None)]


@pytest.mark.parametrize(
    ("gpu", "check"),
    [
        (Gpu(uuid="GPU-1", health=GpuHealth(ecc_uncorrectable=EccUncorrectable(volatile=1))), "ecc.uncorrectable"),
        (Gpu(uuid="GPU-1", health=GpuHealth(row_remap=RowRemap(pending=True))), "row-remap.pending"),
        (Gpu(uuid="GPU-1", health=GpuHealth(row_remap=RowRemap(failure=True))), "row-remap.failure"),
        (Gpu(uuid="GPU-1", pcie_link_width=LinkWidth(current=8, max=16)), "pcie.link"),
    ],
)
def test_each_fault_fails_its_check_naming_the_gpu(gpu: Gpu, check: str) -> None:
    assert checks(host(gpu)) == [(check, "GPU-1")]


def test_what_is_not_known_fails_nothing() -> None:
    unknown = Gpu(
        uuid="GPU-1",
        health=GpuHealth(row_remap=RowRemap(), ecc_uncorrectable=EccUncorrectable()),
        pcie_link_width=LinkWidth(max=16),
    )
    assert checks(host(unknown)) == []


def known(code: int, kind: FaultKind = FaultKind.XID, **told: Any) -> KnownFault:  # noqa: ANN401 - fields of a fault
    fault = Fault(kind=kind, code=code, address="0000:18:00", pci="00000000:18:00.0", message="")
    return KnownFault(fault=replace(fault, **told), sequence=1, device_id="GPU-1")


@pytest.mark.parametrize(
    ("fault", "is_told"),
    [
        (known(79), True),
        (known(79, FaultKind.FALLEN_OFF), True),
        (known(94), False),
        (known(13), False),
        (known(45), False),
        (known(62, caused_by=79), False),
        (known(154, recovery=0), False),
        (known(154), False),
        (known(154, recovery=1), True),
        (known(145, nvlink=NvlinkError()), True),
        (known(145, nvlink=NvlinkError(is_injected=True)), False),
        (known(20034, FaultKind.SXID), False),
        (known(9999), True),
    ],
)
def test_a_fault_of_this_boot_fails_its_gpu_unless_it_is_of_a_program_or_over(
    fault: KnownFault, *, is_told: bool
) -> None:
    found = diagnose(host(WELL), None, [fault]).failures
    expected = [("xid.recent", f"Xid {fault.fault.code} in this boot", "GPU-1")] if is_told else []
    assert [(each.check, each.reason, each.gpu) for each in found] == expected
