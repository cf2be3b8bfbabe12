"""Host pressure: it begins at one percentage and ends below another."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.condition_types import POLICIES, ConditionPolicy
from domain.conditions import Condition, ConditionStatus
from domain.daemon_conditions import DaemonStatement
from domain.ids import NodeId, TenantId
from domain.node import Trust
from domain.pool import PoolClass
from domain.pressure import PRESSURE_TYPES, THRESHOLDS, Pressure, PressureStatement, Sample, Thresholds
from domain.standing import Standing, take

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
CPU, STEAL, MEMORY, IO = Pressure.CPU, Pressure.STEAL, Pressure.MEMORY, Pressure.IO
FRESH: Final = Standing(
    node_id=NodeId("node_1"),
    tenant_id=TenantId("tenant_1"),
    trust=Trust.PLATFORM,
    conditions={},
    no_schedule_reasons=("foreign",),
    pool_class=PoolClass.VPS_HOST,
)
SAMPLES: Final = st.dictionaries(st.sampled_from(Pressure), st.floats(0, 100))


def _after(standing: Standing, sample: Sample) -> Standing:
    changed = take(standing, [PressureStatement(sample, THRESHOLDS)], T0)
    if changed is None:
        return standing
    written = {**standing.conditions, **{each.type: each for each in changed.conditions}}
    return replace(standing, conditions=written, no_schedule_reasons=changed.no_schedule_reasons)


def _reason(standing: Standing, kind: str = "CpuPressure") -> str | None:
    """Return a condition's reason while it holds, else its status; None when it was never written."""
    known = standing.conditions.get(kind)
    if known is None:
        return None
    return known.reason if known.status is ConditionStatus.TRUE else known.status.value


@pytest.mark.parametrize(
    ("kind", "pressure", "reason"),
    [
        ("CpuPressure", CPU, "CpuStall"),
        ("CpuPressure", STEAL, "Steal"),
        ("MemoryPressure", MEMORY, "MemoryStall"),
        ("DiskPressure", IO, "IoStall"),
    ],
)
def test_it_begins_at_one_percentage_ends_below_another_and_stays_between(
    kind: str, pressure: Pressure, reason: str
) -> None:
    limits = THRESHOLDS[pressure]
    calm = _after(FRESH, {pressure: limits.raised - 0.01})
    assert calm == FRESH, "it has not begun"
    held = _after(calm, {pressure: limits.raised})
    assert _reason(held, kind) == reason
    assert held.no_schedule_reasons == ("foreign", kind)
    assert _after(held, {pressure: limits.cleared}) == held, "between the two it stays"
    over = _after(held, {pressure: limits.cleared - 0.01})
    assert (_reason(over, kind), over.no_schedule_reasons) == ("false", ("foreign",))
    assert _after(over, {pressure: limits.raised - 0.01}) == over, "between the two it stays"


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        ([{CPU: 10, STEAL: 30}], "Steal"),
        ([{CPU: 90, STEAL: 30}], "CpuStall"),
        ([{STEAL: 30}, {CPU: 90, STEAL: 30}], "Steal"),
        ([{STEAL: 30}, {CPU: 90, STEAL: 15}], "Steal"),
        ([{STEAL: 30}, {CPU: 90, STEAL: 5}], "CpuStall"),
        ([{STEAL: 30}, {CPU: 70, STEAL: 5}], "Steal"),
        ([{STEAL: 30}, {CPU: 10, STEAL: 5}], "false"),
        ([{STEAL: 30}, {STEAL: 5}], "false"),
        ([{STEAL: 30}, {CPU: 10}], "Steal"),
        ([{STEAL: 30}, {}], "Steal"),
        ([{CPU: 90}, {MEMORY: 5, IO: 5}], "CpuStall"),
        ([{CPU: 70, STEAL: 15}], None),
        ([{}], None),
    ],
)
def test_of_two_causes_either_raises_and_both_must_be_over(samples: list[Sample], reason: str | None) -> None:
    standing = FRESH
    for sample in samples:
        standing = _after(standing, sample)
    assert _reason(standing) == reason


@given(st.lists(SAMPLES, max_size=5))
def test_the_same_sample_again_changes_nothing_and_only_its_own_types_are_written(samples: list[Sample]) -> None:
    standing = FRESH
    for sample in samples:
        standing = _after(standing, sample)
        assert _after(standing, sample) == standing
        assert standing.conditions.keys() <= set(PRESSURE_TYPES)
        holding = {kind for kind, each in standing.conditions.items() if each.status is ConditionStatus.TRUE}
        assert set(standing.no_schedule_reasons) == {"foreign"} | holding


@given(st.floats(80, 100), st.floats(80, 100))
def test_what_is_said_does_not_change_with_the_figure(one: float, other: float) -> None:
    assert _after(FRESH, {CPU: one}) == _after(FRESH, {CPU: other})


@pytest.mark.parametrize("pool_class", [None, *PoolClass])
def test_it_keeps_work_off_hosts_of_virtual_servers_and_is_an_alert_elsewhere(pool_class: PoolClass | None) -> None:
    held = _after(replace(FRESH, pool_class=pool_class), {MEMORY: 50})
    assert _reason(held, "MemoryPressure") == "MemoryStall"
    assert ("MemoryPressure" in held.no_schedule_reasons) is (pool_class is PoolClass.VPS_HOST)
    assert {POLICIES[kind] for kind in PRESSURE_TYPES} == {ConditionPolicy.NO_SCHEDULE_ON_VPS_HOST}


def test_a_node_that_moved_takes_its_new_pools_effect_with_the_next_sample_whatever_that_is() -> None:
    held = _after(FRESH, {IO: 70})
    moved = _after(replace(held, pool_class=PoolClass.METAL_HOST), {})
    assert moved.no_schedule_reasons == ("foreign",)
    assert moved.conditions["DiskPressure"] == replace(held.conditions["DiskPressure"], no_schedule=False)
    back = _after(replace(moved, pool_class=PoolClass.VPS_HOST), {IO: 50})
    assert back.no_schedule_reasons == ("foreign", "DiskPressure")


def test_a_tenants_machine_keeps_the_platforms_last_view() -> None:
    held = _after(FRESH, {IO: 70})
    theirs = replace(held, trust=Trust.TENANT_CONTROLLED)
    assert _after(theirs, {IO: 0, CPU: 100}) == theirs


def test_two_sources_are_decided_at_once_and_each_keeps_to_its_types() -> None:
    exposed = Condition("ForeignGpuExposure", ConditionStatus.TRUE, None, None, T0, no_schedule=True)
    standing = replace(FRESH, conditions={exposed.type: exposed}, no_schedule_reasons=("foreign", exposed.type))
    changed = take(standing, [PressureStatement({IO: 70}, THRESHOLDS), DaemonStatement(())], T0)
    assert changed is not None
    assert [(each.type, each.status.value) for each in changed.conditions] == [
        ("DiskPressure", "true"),
        ("ForeignGpuExposure", "false"),
    ]
    assert changed.no_schedule_reasons == ("foreign", "DiskPressure")


@pytest.mark.parametrize("text", ["60/80", "80/80", "80/0", "101/60", "80", "", "a/b", "nan/10", "80/60/40"])
def test_thresholds_that_could_not_work_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"percentages|float"):
        Thresholds.read(text)


def test_thresholds_are_read_as_they_are_written() -> None:
    assert Thresholds.read("80/60") == Thresholds(80, 60) == Thresholds.read(str(Thresholds(80, 60)))
    assert str(Thresholds.read("12.5/2.5")) == "12.5/2.5"
