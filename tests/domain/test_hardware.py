"""A node's hardware identity: who has a key, who waits for an operator, and two machines on one identity."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from domain.conditions import Condition, ConditionStatus
from domain.devices import hardware_of
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.documents.nics import Nic, NicsSection
from domain.documents.system import SystemSection
from domain.hardware import (
    Hardware,
    HardwareConflict,
    conflict_observed,
    is_second_machine,
    next_hardware,
    seen_identity,
)
from domain.ids import NodeId
from domain.inventory import InventoryOutcome, NodeState, Report, apply_report
from domain.second_machine import second_machine

NODE: Final = NodeId("node_00000000000000000000000001")
OTHER: Final = NodeId("node_00000000000000000000000002")
T0: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _machine(digit: str) -> dict[str, Section]:
    return {
        "system": SystemSection(
            product_uuid=f"7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6{digit}", system_serial=f"QX7M-004{digit}"
        ),
        "nics": NicsSection(nics=(Nic(name="eth0", permanent_mac=f"0c:42:a1:00:00:0{digit}"),)),
        "gpus": GpusSection(
            enumeration=Enumeration.COMPLETE, gpus=(Gpu(uuid=f"GPU-{digit}"), Gpu(uuid="GPU-", index=1))
        ),
    }


def _next(known: Hardware, sections: Mapping[str, Section], holders: Mapping[str, NodeId] | None = None) -> Hardware:
    return next_hardware(known, seen_identity(known, sections), holders or {}, "n1", sections)


FIRST: Final = _next(Hardware(), _machine("1"))
TAKEN: Final = _next(Hardware(), _machine("1"), {FIRST.key or "": OTHER})
STATE: Final = NodeState(
    node_id=NODE,
    identity_key="n1",
    no_schedule_reasons=("Xid79",),
    applied={"system": "1"},
    sections=_machine("1"),
    devices=(),
    conditions={},
    hardware=FIRST,
)


def _report(sections: Mapping[str, Section], *, came_back: bool = False) -> Report:
    hashes = dict.fromkeys(sections, "0" * 64)
    shown = hardware_of(NODE, sections)
    return Report(hashes=hashes, sections=sections, shown=shown, owners={}, booked=(), came_back=came_back)


def test_a_key_that_nobody_has_is_trusted() -> None:
    assert FIRST.trusted
    assert FIRST.conflict is None
    assert conflict_observed(FIRST, {}) is None


def test_a_key_that_another_node_has_waits_for_an_operator() -> None:
    assert (TAKEN.key, TAKEN.trusted, TAKEN.conflict) == (FIRST.key, False, HardwareConflict.KEY_TAKEN)
    said = conflict_observed(TAKEN, {FIRST.key or "": OTHER})
    assert said is not None
    assert OTHER in (said.message or "")
    # The other node letting go is no decision.
    assert _next(TAKEN, _machine("1")) == TAKEN
    # Other hardware is another question.
    assert _next(TAKEN, _machine("2")).trusted


def test_a_weak_key_is_neither_trusted_nor_in_conflict() -> None:
    weak = _next(Hardware(), {"system": SystemSection(system_serial="QX7M-0041")}, {"": OTHER})
    assert weak.key is not None
    assert (weak.trusted, weak.conflict) == (False, None)


@given(st.booleans(), st.sampled_from([None, *HardwareConflict]))
def test_the_same_report_again_leaves_everything_as_it_was(trusted: bool, conflict: HardwareConflict | None) -> None:  # noqa: FBT001
    known = replace(FIRST, trusted=trusted and conflict is None, conflict=conflict)
    assert _next(known, _machine("1"), {FIRST.key or "": OTHER}) == known


def test_hardware_that_changes_once_is_an_exchange() -> None:
    assert not is_second_machine(FIRST, _machine("2"), came_back=False)
    assert second_machine(STATE, _report(_machine("2")), T0) is None


def test_hardware_that_came_back_is_a_second_machine_told_once() -> None:
    found = second_machine(STATE, _report(_machine("2"), came_back=True), T0)
    assert found is not None
    assert (found.hardware.trusted, found.hardware.conflict) == (False, HardwareConflict.TWO_MACHINES)
    assert found.hardware.evidence == FIRST.evidence
    assert found.no_schedule_reasons == ("Xid79", "DuplicateIdentity")
    assert [each.payload["reason"] for each in found.events] == ["TwoMachines"]
    told = replace(
        STATE,
        hardware=found.hardware,
        no_schedule_reasons=found.no_schedule_reasons,
        conditions={each.type: each for each in found.conditions},
    )
    again = second_machine(told, _report(_machine("2")), T0)
    assert again is not None
    assert (again.hardware, again.conditions, again.events) == (found.hardware, (), ())
    # The machine that the node has goes on as ever.
    assert second_machine(told, _report(_machine("1"), came_back=True), T0) is None


def test_the_same_machine_with_a_part_exchanged_and_back_is_no_second_machine() -> None:
    without_gpus = {**_machine("1"), "gpus": GpusSection(enumeration=Enumeration.COMPLETE)}
    assert second_machine(STATE, _report(without_gpus, came_back=True), T0) is None


def test_what_nobody_owns_yet_of_taken_hardware_is_the_holders() -> None:
    state = replace(STATE, applied=None, sections={}, hardware=Hardware(), no_schedule_reasons=())
    report = replace(_report(_machine("1")), key_holders={FIRST.key or "": OTHER})
    outcome = apply_report(state, report, T0)
    assert isinstance(outcome, InventoryOutcome)
    assert outcome.hardware.conflict is HardwareConflict.KEY_TAKEN
    assert {conflict.owner for conflict in outcome.devices.conflicts} == {OTHER}
    assert {conflict.device_id for conflict in outcome.devices.conflicts} >= {"GPU-1", "0c:42:a1:00:00:01"}
    [condition] = [each for each in outcome.conditions if each.type == "DuplicateIdentity"]
    assert condition.reason == "DeviceOwnedElsewhere"
    assert "its hardware is that of" in (condition.message or "")


def test_a_decided_conflict_ends_the_condition_without_any_list_of_devices() -> None:
    only_system = {"system": _machine("1")["system"]}
    known = Condition("DuplicateIdentity", ConditionStatus.TRUE, "HardwareKeyTaken", None, T0, no_schedule=True)
    state = replace(STATE, conditions={known.type: known}, no_schedule_reasons=("DuplicateIdentity",))
    outcome = apply_report(state, _report(only_system), T0)
    assert isinstance(outcome, InventoryOutcome)
    assert [(each.type, each.status) for each in outcome.conditions] == [("DuplicateIdentity", ConditionStatus.FALSE)]
    assert outcome.no_schedule_reasons == ()
