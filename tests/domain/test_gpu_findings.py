"""What an inventory shows to be wrong with GPUs."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from domain.documents.gpus import (
    EccUncorrectable,
    Enumeration,
    Fabric,
    Gpu,
    GpuHealth,
    GpusSection,
    Mode,
    NvLink,
    RetiredPages,
    RowRemap,
)
from domain.gpu_devices import gpu_devices
from domain.gpu_findings import FABRIC_PENDING_MAX, FABRIC_PENDING_SINCE, Cause, due_at, findings
from domain.ids import NodeId
from tests.domain.gpus import links

NODE: Final = NodeId("node_00000000000000000000000001")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
PENDING: Final = GpuHealth(row_remap=RowRemap(pending=True))
COMPLETED: Final = Fabric(state="completed", status="success", health="healthy")


def _found(*gpus: Gpu, in_full: bool = True) -> list[dict[Cause, bool]]:
    """Return by GPU what holds and what does not; what is left out is not known."""
    devices = gpu_devices(NODE, GpusSection(enumeration=Enumeration.COMPLETE, gpus=gpus))
    found = findings(devices, NOW, in_full=in_full)
    return [{cause: words is not None for cause, words in found[device.id].items()} for device in devices]


def _gpu(number: int = 1, active: int = 0, inactive: int = 0, *, mig: bool = False) -> Gpu:
    return Gpu(
        uuid=f"GPU-{number}",
        name="NVIDIA H100 80GB HBM3",
        nvlinks=links(active, inactive),
        mig_mode=Mode(current=True, pending=True) if mig else None,
    )


@pytest.mark.parametrize(
    ("health", "found"),
    [
        (None, {}),
        (GpuHealth(row_remap=RowRemap()), {}),
        (PENDING, {Cause.REMAP_PENDING: True}),
        (GpuHealth(row_remap=RowRemap(pending=False)), {Cause.REMAP_PENDING: False}),
        (GpuHealth(row_remap=RowRemap(failure=True)), {Cause.REMAP_FAILED: True}),
        (GpuHealth(row_remap=RowRemap(failure=False)), {Cause.REMAP_FAILED: False}),
        (GpuHealth(retired_pages=RetiredPages(pending=True)), {Cause.RETIREMENT_PENDING: True}),
        (GpuHealth(retired_pages=RetiredPages(pending=False)), {Cause.RETIREMENT_PENDING: False}),
        (GpuHealth(ecc_uncorrectable=EccUncorrectable(volatile=1)), {Cause.VOLATILE_ERRORS: True}),
        (GpuHealth(ecc_uncorrectable=EccUncorrectable(volatile=0)), {Cause.VOLATILE_ERRORS: False}),
    ],
)
def test_each_fact_of_the_memory_decides_its_own_cause(health: GpuHealth | None, found: dict[Cause, bool]) -> None:
    assert _found(Gpu(uuid="GPU-1", health=health)) == [found]


def test_what_was_repaired_is_no_fault() -> None:
    repaired = GpuHealth(
        row_remap=RowRemap(correctable=3, uncorrectable=12, pending=False, failure=False),
        retired_pages=RetiredPages(sbe=4, dbe=9, pending=False),
        ecc_uncorrectable=EccUncorrectable(volatile=0, aggregate=71),
    )
    (found,) = _found(Gpu(uuid="GPU-1", health=repaired))
    assert not any(found.values())


def test_error_correction_that_was_turned_off_has_no_errors_to_tell() -> None:
    assert _found(Gpu(uuid="GPU-1", ecc_mode=Mode(current=False))) == [{Cause.VOLATILE_ERRORS: False}]
    assert _found(Gpu(uuid="GPU-1", ecc_mode=Mode(current=True, pending=False))) == [{}]


@pytest.mark.parametrize("name", ["NVIDIA GB10", "Orin (nvgpu)", "NVIDIA GH200 480GB"])
def test_a_part_that_lacks_facts_by_nature_shows_nothing_wrong(name: str) -> None:
    assert _found(Gpu(name=name, unified_memory=True)) == [{}]


@pytest.mark.parametrize(
    ("fabric", "holds", "not_known"),
    [
        (COMPLETED, set(), set()),
        (Fabric(state="completed", status="insufficient_resources"), {Cause.FABRIC_FAILED}, {Cause.FABRIC_UNHEALTHY}),
        (Fabric(state="Completed", status="Insufficient Resources"), {Cause.FABRIC_FAILED}, {Cause.FABRIC_UNHEALTHY}),
        (Fabric(state="completed", status="success"), set(), {Cause.FABRIC_UNHEALTHY}),
        (Fabric(state="completed", status="success", health="unhealthy"), {Cause.FABRIC_UNHEALTHY}, set()),
        (Fabric(state="completed", status="success", health="limited_capacity"), {Cause.FABRIC_UNHEALTHY}, set()),
        (
            Fabric(state="completed", status="success", health_issues=("route_unhealthy",)),
            {Cause.FABRIC_UNHEALTHY},
            set(),
        ),
        (Fabric(state="completed", status="success", health_issues=("0x30000",)), set(), {Cause.FABRIC_UNHEALTHY}),
        (Fabric(state="completed", status="success", health="healthy", health_issues=("0x1",)), set(), set()),
        (Fabric(state="not_started"), set(), {Cause.FABRIC_FAILED, Cause.FABRIC_UNHEALTHY}),
        (Fabric(), set(), {Cause.FABRIC_FAILED, Cause.FABRIC_UNHEALTHY, Cause.FABRIC_PENDING}),
    ],
)
def test_a_registration_counts_by_its_status_and_its_health(
    fabric: Fabric, holds: set[Cause], not_known: set[Cause]
) -> None:
    (found,) = _found(Gpu(uuid="GPU-1", fabric=fabric))
    assert {cause for cause, holding in found.items() if holding} == holds
    assert {Cause.FABRIC_FAILED, Cause.FABRIC_UNHEALTHY, Cause.FABRIC_PENDING} - set(found) == not_known


@pytest.mark.parametrize("late", [True, False])
def test_a_registration_in_progress_is_a_fault_only_after_a_time(*, late: bool) -> None:
    (gpu,) = gpu_devices(NODE, GpusSection(gpus=(Gpu(uuid="GPU-1", fabric=Fabric(state="in_progress")),)))
    since = NOW - FABRIC_PENDING_MAX + timedelta(seconds=0 if late else 1)
    gpu.attributes[FABRIC_PENDING_SINCE] = since.isoformat()  # type: ignore[index]  # as remembered
    assert (findings([gpu], NOW, in_full=True)[gpu.id][Cause.FABRIC_PENDING] is not None) is late
    assert due_at([gpu], NOW) == (None if late else NOW + timedelta(seconds=1))


def test_a_gpu_with_fewer_links_than_most_of_its_kind_is_degraded() -> None:
    found = _found(_gpu(1, 18), _gpu(2, 18), _gpu(3, 17, 1))
    assert [each[Cause.FEWER_LINKS] for each in found] == [False, False, True]


@pytest.mark.parametrize(
    "gpus",
    [
        (_gpu(1, 18), _gpu(2, 17, 1)),
        (_gpu(1, 12), _gpu(2, 12), _gpu(3, 0, 12)),
        (_gpu(1, 18), _gpu(2, 18), _gpu(3, 4)),
        (_gpu(1, 18), _gpu(2, 18), _gpu(3, 4, 14, mig=True)),
    ],
    ids=["a pair", "one without a bridge", "fewer by nature", "one in MIG mode"],
)
def test_no_gpu_is_degraded_where_its_kind_does_not_tell(gpus: tuple[Gpu, ...]) -> None:
    assert not any(each[Cause.FEWER_LINKS] for each in _found(*gpus))


def test_where_one_gpu_does_not_tell_its_links_nothing_is_said_of_its_kind() -> None:
    gpus = (_gpu(1, 18), _gpu(2, 18), _gpu(3, 17, 1))
    assert not any(Cause.FEWER_LINKS in each for each in _found(*gpus, _gpu(4)))
    assert not any(Cause.FEWER_LINKS in each for each in _found(*gpus, in_full=False))


def test_links_of_unknown_state_are_neither() -> None:
    assert _found(Gpu(uuid="GPU-1", nvlinks=(NvLink(link=0, state="N/A"), NvLink(link=1)))) == [{}]
