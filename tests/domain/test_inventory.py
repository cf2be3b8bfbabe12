"""Applying a node's reported inventory."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from domain.conditions import ConditionStatus
from domain.devices import DeviceClass, hardware_of
from domain.digest import inventory_digest, section_sha256
from domain.documents.cpu import CpuSection
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.events import CONDITION_CHANGED, DEVICE_HEALTH_CHANGED, INVENTORY_CHANGED
from domain.hardware import Hardware
from domain.ids import DeviceId, NodeId
from domain.inventory import InventoryOutcome, NodeState, Report, Unchanged, apply_report
from domain.sections import encode
from tests.domain import strategies
from tests.domain.bookings import booked as at_once

NODE: Final = NodeId("node_00000000000000000000000001")
OTHER: Final = NodeId("node_00000000000000000000000002")
T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
T1: Final = T0 + timedelta(minutes=1)
FRESH: Final = NodeState(
    node_id=NODE,
    identity_key="n1",
    no_schedule_reasons=(),
    applied=None,
    sections={},
    devices=(),
    conditions={},
    hardware=Hardware(),
)
ONE: Final = Gpu(uuid="GPU-1", pci_bus_id="18:00.0")
TWO: Final = Gpu(uuid="GPU-2", pci_bus_id="2a:00.0")


def _report(
    sections: Mapping[str, Section],
    owners: Mapping[DeviceId, NodeId] | None = None,
    booked: frozenset[DeviceId] = frozenset(),
) -> Report:
    hashes = {name: section_sha256(encode(section)) for name, section in sections.items()}
    shown = hardware_of(NODE, sections)
    return Report(hashes=hashes, sections=sections, shown=shown, owners=owners or {}, booked=at_once(booked))


def _write(state: NodeState, report: Report, outcome: InventoryOutcome | Unchanged) -> NodeState:
    if isinstance(outcome, Unchanged):
        return state
    rows = {device.id: device for device in (*state.devices, *outcome.devices.upsert)}
    return NodeState(
        node_id=state.node_id,
        identity_key=state.identity_key,
        no_schedule_reasons=outcome.no_schedule_reasons,
        applied=report.hashes,
        sections=report.sections,
        devices=tuple(device for device in rows.values() if device.id not in outcome.devices.delete),
        conditions={**state.conditions, **{each.type: each for each in outcome.conditions}},
        hardware=outcome.hardware,
        waits=outcome.devices.waits,
        labels=outcome.labels,
        health=outcome.devices.health.stands,
    )


def _apply(state: NodeState, report: Report, now: datetime = T0) -> tuple[NodeState, InventoryOutcome]:
    outcome = apply_report(state, report, now)
    assert isinstance(outcome, InventoryOutcome)
    return _write(state, report, outcome), outcome


def _gpus(*gpus: Gpu, enumeration: Enumeration = Enumeration.COMPLETE, reason: str | None = None) -> dict[str, Section]:
    return {"gpus": GpusSection(enumeration=enumeration, reason=reason, driver_version="580.95.05", gpus=gpus)}


def _event_types(outcome: InventoryOutcome) -> list[str]:
    return [event.type for event in outcome.events]


@given(st.lists(strategies.machines(), min_size=1, max_size=4), st.data())
def test_applying_a_report_again_is_unchanged(machines: list[dict[str, Section]], data: st.DataObject) -> None:
    state = FRESH
    for sections in machines:
        held = [device.id for device in state.devices]
        claimed = sorted({device.id for device in hardware_of(NODE, sections)}.difference(held))
        foreign = data.draw(st.frozensets(st.sampled_from(claimed))) if claimed else frozenset()
        booked = data.draw(st.frozensets(st.sampled_from(held))) if held else frozenset()
        report = _report(sections, dict.fromkeys(foreign, OTHER), booked)
        state = _write(state, report, apply_report(state, report, T0))
        assert apply_report(state, report, T1) == Unchanged()


@given(strategies.machines(), strategies.machines())
def test_events_are_the_set_then_the_changes_then_the_faults_then_the_conditions(
    before: dict[str, Section], after: dict[str, Section]
) -> None:
    state, _ = _apply(FRESH, _report(before))
    outcome = apply_report(state, _report(after), T1)
    if isinstance(outcome, Unchanged):
        assert before == after
        return
    assert _event_types(outcome) == [
        INVENTORY_CHANGED,
        *(change.type.value for change in outcome.changes),
        *[DEVICE_HEALTH_CHANGED] * (len(outcome.devices.health.write) + len(outcome.devices.health.ended)),
        *[CONDITION_CHANGED] * len(outcome.conditions),
    ]
    payloads = [event.payload for event in outcome.events]
    assert json.loads(json.dumps(payloads)) == payloads


@given(strategies.machines())
def test_a_first_inventory_is_told_and_has_no_changes(sections: dict[str, Section]) -> None:
    _, outcome = _apply(FRESH, _report(sections))
    assert outcome.changes == ()
    assert outcome.changed_sections == tuple(sorted(sections))
    assert outcome.digest == inventory_digest(_report(sections).hashes)
    assert outcome.events[0].payload == {
        "digest": outcome.digest,
        "sections": sorted(sections),
        "advisory": False,
        "changes": [],
    }


def test_a_change_is_told_in_the_set_and_by_itself() -> None:
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO)))
    _, outcome = _apply(state, _report(_gpus(ONE)), T1)
    change = {
        "deviceId": "GPU-2",
        "before": {"uuid": "GPU-2", "pciBusId": "2a:00.0"},
        "after": None,
    }
    assert outcome.devices.delete == ("GPU-2",)
    assert [(event.type, event.payload) for event in outcome.events] == [
        (
            "node.inventory.changed",
            {
                "digest": outcome.digest,
                "sections": ["gpus"],
                "advisory": False,
                "changes": [{"type": "node.gpu.missing", **change}],
            },
        ),
        ("node.gpu.missing", change),
    ]


def test_bytes_that_changed_without_a_change_of_hardware_are_told_without_changes() -> None:
    state, _ = _apply(FRESH, _report({"cpu": CpuSection(cores=8)}))
    _, outcome = _apply(state, _report({"cpu": CpuSection(cores=8, flags=("avx512f",))}), T1)
    assert (outcome.changed_sections, outcome.changes) == (("cpu",), ())
    assert _event_types(outcome) == [INVENTORY_CHANGED]


def test_a_section_that_left_the_set_is_named_and_takes_nothing_away() -> None:
    disks = DisksSection(disks=(Disk(name="sda", serial="S1"),))
    state, _ = _apply(FRESH, _report({**_gpus(ONE), "disks": disks}))
    after, outcome = _apply(state, _report(_gpus(ONE)), T1)
    assert (outcome.changed_sections, outcome.changes) == (("disks",), ())
    assert {device.id for device in after.devices} == {"GPU-1", "s1"}


def test_a_cut_enumeration_raises_inventory_degraded_and_keeps_the_gpus() -> None:
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO)))
    cut = _gpus(enumeration=Enumeration.UNAVAILABLE, reason="Driver/library version mismatch")
    after, outcome = _apply(state, _report(cut), T1)
    assert after.devices == state.devices
    assert outcome.no_schedule_reasons == ()
    assert [(event.type, event.payload) for event in outcome.events[1:]] == [
        (
            "node.condition.changed",
            {
                "condition": "InventoryDegraded",
                "status": "true",
                "reason": "EnumerationUnavailable",
                "message": "Driver/library version mismatch",
                "noSchedule": False,
            },
        )
    ]
    _, healed = _apply(after, _report(_gpus(ONE, TWO)), T1)
    assert [(each.type, each.status) for each in healed.conditions] == [("InventoryDegraded", ConditionStatus.FALSE)]
    assert healed.changes == ()


def test_a_gpu_that_left_while_the_enumeration_was_cut_is_told_when_it_is_complete_again() -> None:
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO)))
    cut, outcome = _apply(state, _report(_gpus(ONE, enumeration=Enumeration.INCOMPLETE)))
    assert outcome.changes == ()
    _, whole = _apply(cut, _report(_gpus(ONE)))
    assert [(change.type.value, change.device_id) for change in whole.changes] == [("node.gpu.missing", "GPU-2")]
    assert whole.devices.delete == ("GPU-2",)


def test_a_gpu_that_a_cut_enumeration_did_not_show_is_not_added_by_a_complete_one() -> None:
    state, _ = _apply(FRESH, _report(_gpus(ONE, enumeration=Enumeration.INCOMPLETE)))
    after, outcome = _apply(state, _report(_gpus(ONE, TWO)))
    assert outcome.changes == ()
    assert {device.id for device in after.devices} == {"GPU-1", "GPU-2"}


def test_a_missing_gpu_that_is_booked_is_told_once() -> None:
    booked = frozenset({DeviceId("GPU-2")})
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO)))
    gone, outcome = _apply(state, _report(_gpus(ONE), booked=booked))
    assert [(each.id, each.missing) for each in outcome.devices.upsert] == [("GPU-2", True)]
    cut, _ = _apply(gone, _report(_gpus(enumeration=Enumeration.UNAVAILABLE), booked=booked))
    _, again = _apply(cut, _report(_gpus(ONE), booked=booked))
    assert again.changes == ()


def test_a_missing_device_is_deleted_by_the_same_report_once_its_booking_ended() -> None:
    booked = frozenset({DeviceId("GPU-2")})
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO)))
    gone, _ = _apply(state, _report(_gpus(ONE), booked=booked))
    _, freed = _apply(gone, _report(_gpus(ONE)))
    assert (freed.devices.delete, freed.changed_sections, freed.events) == (("GPU-2",), (), ())


def test_a_device_of_another_node_keeps_work_off_the_reporter_until_it_is_resolved() -> None:
    state = replace(FRESH, no_schedule_reasons=("Foreign",))
    after, outcome = _apply(state, _report(_gpus(ONE, TWO), {DeviceId("GPU-2"): OTHER}))
    assert outcome.no_schedule_reasons == ("Foreign", "DuplicateIdentity")
    assert [device.id for device in outcome.devices.upsert] == ["GPU-1"]
    assert outcome.events[1].payload["message"] == f"GPU-2 is a device of {OTHER}"
    _, resolved = _apply(after, _report(_gpus(ONE, TWO)), T1)
    assert resolved.no_schedule_reasons == ("Foreign",)
    assert [device.id for device in resolved.devices.upsert] == ["GPU-2"]
    assert [each.since for each in resolved.conditions] == [T1]
    assert _event_types(resolved) == [CONDITION_CHANGED]


def test_a_set_without_a_section_leaves_the_devices_of_others_that_it_showed_contested() -> None:
    theirs = DeviceId("GPU-2")
    state, _ = _apply(FRESH, _report(_gpus(ONE, TWO), {theirs: OTHER}))
    for silence in ({"disks": DisksSection()}, _gpus(ONE, enumeration=Enumeration.INCOMPLETE)):
        silent = replace(_report(silence, {theirs: OTHER}), contested={theirs: DeviceClass.GPU})
        after, outcome = _apply(state, silent)
        assert "DuplicateIdentity" not in {each.type for each in outcome.conditions}
        assert outcome.devices.waits.contested == (theirs,)
        assert after.no_schedule_reasons == ("DuplicateIdentity",)
        # Its owner let go of it.
        _, ended = _apply(after, _report(silence))
        assert {each.type: each.status for each in ended.conditions} == {"DuplicateIdentity": ConditionStatus.FALSE}
    _, gone = _apply(state, replace(_report(_gpus(ONE), {theirs: OTHER}), contested={theirs: DeviceClass.GPU}))
    assert gone.no_schedule_reasons == ()
