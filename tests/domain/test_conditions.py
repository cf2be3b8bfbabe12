"""Conditions and the reasons not to schedule."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.condition_types import NO_SCHEDULE, POLICIES, ConditionPolicy
from domain.conditions import (
    Condition,
    ConditionStatus,
    Observed,
    inventory_conditions,
    merge_no_schedule_reasons,
    transition,
)
from domain.device_plan import DeviceConflict
from domain.documents.disks import DisksSection
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.ids import DeviceId, NodeId

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
T1: Final = T0 + timedelta(minutes=1)
OTHER: Final = NodeId("node_00000000000000000000000002")
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
TYPES: Final = st.sampled_from(["DuplicateIdentity", "InventoryDegraded", "DriverMismatch", "Xid13"])
OBSERVED: Final = st.lists(
    st.builds(Observed, type=TYPES, status=st.sampled_from(ConditionStatus), reason=st.sampled_from([None, "A", "B"]))
)


def _condition(kind: str, status: ConditionStatus, since: datetime = T0) -> Condition:
    return Condition(kind, status, None, None, since, kind in NO_SCHEDULE)


@given(OBSERVED, OBSERVED)
def test_what_was_written_is_not_written_again(before: list[Observed], after: list[Observed]) -> None:
    known = {each.type: each for each in transition({}, before, T0)}
    changed = transition(known, after, T1)
    assert transition({**known, **{each.type: each for each in changed}}, after, T1 + timedelta(hours=1)) == ()


@given(OBSERVED, OBSERVED)
def test_since_moves_only_with_the_status(before: list[Observed], after: list[Observed]) -> None:
    known = {each.type: each for each in transition({}, before, T0)}
    for condition in transition(known, after, T1):
        old = known.get(condition.type)
        assert condition.since == (T0 if old is not None and old.status is condition.status else T1)


def test_a_type_never_seen_and_false_is_not_written() -> None:
    assert transition({}, [Observed("DriverMismatch", FALSE)], T0) == ()
    assert [each.status for each in transition({}, [Observed("AcceptanceFailed", UNKNOWN)], T0)] == [UNKNOWN]


def test_a_type_that_nobody_speaks_of_stays_as_it_is() -> None:
    assert transition({"DriverMismatch": _condition("DriverMismatch", TRUE)}, [], T1) == ()


def test_another_message_is_a_change_that_keeps_since() -> None:
    known = Condition("InventoryDegraded", TRUE, "EnumerationIncomplete", "one", T0, no_schedule=False)
    said = Observed("InventoryDegraded", TRUE, "EnumerationIncomplete", "two")
    assert transition({known.type: known}, [said], T1) == (replace(known, message="two"),)


@given(
    st.lists(st.sampled_from(["Foreign", "DriverMismatch", "Another"]), unique=True), st.sampled_from(ConditionStatus)
)
def test_reasons_of_other_owners_stay_in_their_order(current: list[str], status: ConditionStatus) -> None:
    merged = merge_no_schedule_reasons(current, [_condition("DriverMismatch", status)])
    assert [each for each in merged if each != "DriverMismatch"] == [
        each for each in current if each != "DriverMismatch"
    ]
    assert merge_no_schedule_reasons(merged, [_condition("DriverMismatch", status)]) == merged


def test_a_condition_that_holds_is_a_reason_and_one_that_does_not_is_none() -> None:
    assert merge_no_schedule_reasons(["Foreign"], [_condition("DriverMismatch", TRUE)]) == ("Foreign", "DriverMismatch")
    assert merge_no_schedule_reasons(["DriverMismatch", "Foreign"], [_condition("DriverMismatch", FALSE)]) == (
        "Foreign",
    )


def test_an_unknown_condition_neither_adds_nor_drops_its_reason() -> None:
    assert merge_no_schedule_reasons([], [_condition("DriverMismatch", UNKNOWN)]) == ()
    assert merge_no_schedule_reasons(["DriverMismatch"], [_condition("DriverMismatch", UNKNOWN)]) == ("DriverMismatch",)


def test_an_alert_is_no_reason() -> None:
    assert merge_no_schedule_reasons([], [_condition("InventoryDegraded", TRUE)]) == ()


def test_the_policies_are_those_of_the_rules() -> None:
    assert {"DuplicateIdentity", "DriverMismatch", "NodeUnreachable", "AcceptanceFailed"} <= NO_SCHEDULE
    assert POLICIES["RowRemapPending"] is ConditionPolicy.DEVICE
    assert POLICIES["CpuPressure"] is ConditionPolicy.NO_SCHEDULE_ON_VPS_HOST
    assert not {"InventoryDegraded", "RebootRequired", "ClockSkew", "UncorrectableEcc", "DiskPressure"} & NO_SCHEDULE


@pytest.mark.parametrize(
    ("enumeration", "status", "reason"),
    [
        (Enumeration.COMPLETE, FALSE, None),
        (Enumeration.INCOMPLETE, TRUE, "EnumerationIncomplete"),
        (Enumeration.UNAVAILABLE, TRUE, "EnumerationUnavailable"),
    ],
)
def test_an_enumeration_that_is_not_complete_degrades_the_inventory(
    enumeration: Enumeration, status: ConditionStatus, reason: str | None
) -> None:
    message = None if reason is None else "Driver/library version mismatch"
    said = inventory_conditions({"gpus": GpusSection(enumeration=enumeration, reason=message)}, ())
    assert said[0] == Observed("InventoryDegraded", status, reason, message)


def test_sections_that_did_not_come_say_nothing() -> None:
    assert inventory_conditions({}, ()) == (Observed("DuplicateIdentity", FALSE),)


def test_a_conflict_names_device_and_owner() -> None:
    said = inventory_conditions({"disks": DisksSection()}, [DeviceConflict(DeviceId("GPU-1"), OTHER)])
    assert said == (Observed("DuplicateIdentity", TRUE, "DeviceOwnedElsewhere", f"GPU-1 is a device of {OTHER}"),)


def test_many_conflicts_are_named_up_to_a_bound() -> None:
    conflicts = [DeviceConflict(DeviceId(f"GPU-{each}"), OTHER) for each in range(20)]
    (said,) = inventory_conditions({}, conflicts)
    assert said.message is not None
    assert said.message.endswith("; and 12 more")


def _model_unknown(*names: str | None, enumeration: Enumeration = Enumeration.COMPLETE) -> list[Observed]:
    section = GpusSection(enumeration=enumeration, gpus=tuple(Gpu(name=name) for name in names))
    return [each for each in inventory_conditions({"gpus": section}, ()) if each.type == "GpuModelUnknown"]


def test_boards_whose_names_the_table_lacks_are_told_once_each_with_their_number() -> None:
    names = ["NVIDIA H900", "NVIDIA H200", "NVIDIA Graphics Device", "NVIDIA H900"]
    (said,) = _model_unknown(*names)
    assert (said.status, said.reason) == (TRUE, "NameNotInTable")
    assert said.message is not None
    assert said.message.endswith("; 2 named 'NVIDIA H900'")
    assert said.message.startswith("1 named 'NVIDIA Graphics Device' (names no model")
    assert _model_unknown(*reversed(names)) == [said]


def test_a_full_list_of_known_boards_clears_an_unknown_model_and_so_does_a_list_of_none() -> None:
    assert _model_unknown("NVIDIA H200", "NVIDIA GB10") == [Observed("GpuModelUnknown", FALSE)]
    assert _model_unknown() == [Observed("GpuModelUnknown", FALSE)]


@pytest.mark.parametrize(
    "name", ["GRID P40-24Q", "NVIDIA H900 MIG 1g.10gb", "Orin (nvgpu)", "NVIDIA DGX Display", "NVIDIA GH200"]
)
def test_what_is_no_board_or_is_known_raises_no_unknown_model(name: str) -> None:
    assert _model_unknown(name) == [Observed("GpuModelUnknown", FALSE)]


def test_a_virtual_gpu_of_a_board_that_the_table_lacks_raises_no_unknown_model() -> None:
    guest = GpusSection(enumeration=Enumeration.COMPLETE, gpus=(Gpu(name="NVIDIA H900", virtualization="vgpu"),))
    assert Observed("GpuModelUnknown", FALSE) in inventory_conditions({"gpus": guest}, ())


@pytest.mark.parametrize("name", [None, "[N/A]", "GPU is lost"])
def test_a_gpu_without_a_name_neither_raises_nor_clears_an_unknown_model(name: str | None) -> None:
    assert _model_unknown(name) == []
    assert _model_unknown("NVIDIA H200", name) == []
    assert [each.status for each in _model_unknown("NVIDIA H900", name)] == [TRUE]


@pytest.mark.parametrize("enumeration", [Enumeration.INCOMPLETE, Enumeration.UNAVAILABLE])
def test_a_list_cut_short_raises_an_unknown_model_and_clears_none(enumeration: Enumeration) -> None:
    assert _model_unknown("NVIDIA H200", enumeration=enumeration) == []
    assert [each.status for each in _model_unknown("NVIDIA H900", enumeration=enumeration)] == [TRUE]
