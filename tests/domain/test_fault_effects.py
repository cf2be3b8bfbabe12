from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.conditions import ConditionStatus
from domain.device import Device, DeviceClass
from domain.device_health import HealthSource
from domain.fault_effects import HealthChange, HealthState, end_faults, settle
from domain.fault_intake import ToldFault, record
from domain.ids import DeviceId, NodeId, TenantId
from domain.kernel_faults import Fault, FaultKind, MigInstance, address_of, with_details
from domain.node import Trust
from domain.node_fault import FaultEnd
from domain.operator_health import clear, put_in_quarantine
from domain.standing import Standing
from domain.xid_rules import XidPolicy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODE = NodeId("node_1")
BOOT = "boot-1"


def _device(name: str, device_class: DeviceClass = DeviceClass.GPU, **more: Any) -> Device:  # noqa: ANN401
    return Device(id=DeviceId(name), node_id=NODE, device_class=device_class, **more)


def _state(**more: Any) -> HealthState:  # noqa: ANN401
    devices = [
        _device("GPU-a", pci_bus_id="00000000:10:00.0"),
        _device("GPU-b", pci_bus_id="00000000:20:00.0"),
        _device("GPU-b/gi1/ci0", DeviceClass.GPU_MIG, parent_id=DeviceId("GPU-b"), bookable=True),
        _device("GPU-b/gi2/ci0", DeviceClass.GPU_MIG, parent_id=DeviceId("GPU-b"), bookable=True),
    ]
    standing = Standing(
        node_id=NODE, tenant_id=TenantId("t"), trust=Trust.PLATFORM, conditions={}, no_schedule_reasons=("Foreign",)
    )
    known: dict[str, Any] = {
        "standing": standing,
        "boot_id": BOOT,
        "devices": {device.id: device for device in devices},
        "health": (),
        "faults": (),
        "inventory_at": None,
    }
    return HealthState(**known | more)


def _told(code: int, sequence: int = 1, place: str = "0000:10:00", message: str = "", **more: Any) -> ToldFault:  # noqa: ANN401
    fault = Fault(
        kind=FaultKind.XID,
        code=code,
        address=place,
        pci=address_of(place),
        message=message,
        mig=more.pop("mig", None),
    )
    return ToldFault(fault=with_details(fault), sequence=sequence, boot_id=BOOT, **more)


def written(state: HealthState, change: HealthChange | None) -> HealthState:
    """Return the state as it is when a change was written."""
    if change is None:
        return state
    faults = {(fault.boot_id, fault.key): fault for fault in (*state.faults, *change.faults)}
    over = {(row.health.device_id, row.health.source, row.health.cause) for row in change.health.ended}
    health = {(row.device_id, row.source, row.cause): row for row in (*state.health, *change.health.write)}
    standing = state.standing
    if change.conditions is not None:
        changed = {condition.type: condition for condition in change.conditions.conditions}
        standing = replace(
            standing,
            conditions={**standing.conditions, **changed},
            no_schedule_reasons=change.conditions.no_schedule_reasons,
        )
    return replace(
        state,
        standing=standing,
        devices={**state.devices, **{device.id: device for device in change.devices}},
        faults=tuple(faults.values()),
        health=tuple(row for key, row in sorted(health.items()) if key not in over),
    )


def _after(state: HealthState, *told: ToldFault, now: datetime = NOW) -> HealthState:
    return written(state, record(state, told, now))


def _unhealthy(state: HealthState) -> set[str]:
    return {device.id for device in state.devices.values() if not device.healthy}


def _holding(state: HealthState) -> set[str]:
    return {kind for kind, each in state.standing.conditions.items() if each.status is ConditionStatus.TRUE}


def test_a_fault_of_a_board_reaches_all_its_atoms_and_leaves_the_node() -> None:
    state = _after(_state(), _told(48, place="0000:20:00", mig=MigInstance(1, 0)))
    assert _unhealthy(state) == {"GPU-b", "GPU-b/gi1/ci0", "GPU-b/gi2/ci0"}
    assert _holding(state) == {"Xid48"}
    assert state.standing.no_schedule_reasons == ("Foreign",)


def test_a_fault_is_told_once_and_comes_back_only_with_a_newer_record() -> None:
    state = _after(_state(), _told(48, 5))
    assert record(state, [_told(48, 5)], NOW) is None
    cleared = written(state, clear(state, DeviceId("GPU-a"), NOW, by="me", reason=None))
    assert (_unhealthy(cleared), _holding(cleared)) == (set(), set())
    assert record(cleared, [_told(48, 5)], NOW) is None
    assert record(cleared, [_told(48, 4)], NOW) is None
    again = record(cleared, [_told(48, 6)], NOW + timedelta(hours=1))
    assert again is not None
    assert [event.type for event in again.events] == ["node.fault.recorded", "device.health.changed"]
    assert _unhealthy(written(cleared, again)) == {"GPU-a"}
    assert again.faults[0].since == NOW + timedelta(hours=1)


def test_what_holds_is_not_lifted_by_a_milder_verdict_of_a_later_record() -> None:
    state = _after(_state(), _told(48, 1))
    lenient = replace(state, overrides={"48": XidPolicy.EVENT})
    later = record(lenient, [_told(48, 2, count=2)], NOW)
    assert later is not None
    assert [(fault.holds, fault.sequence, fault.count) for fault in later.faults] == [(True, 2, 2)]
    assert later.events == ()
    assert _unhealthy(written(lenient, later)) == {"GPU-a"}


def test_a_recovery_of_which_the_value_is_cut_off_ends_nothing() -> None:
    state = _after(_state(), _told(154, 1, message="changed from 0x0 (a) to 0x1 (b)"))
    assert _unhealthy(_after(state, _told(154, 2, message="GPU recovery action changed fr"))) == {"GPU-a"}
    assert _unhealthy(_after(state, _told(154, 2, message="changed from 0x1 (b) to 0x0 (a)"))) == set()


def test_a_consequence_is_kept_apart_from_a_fault_of_its_own() -> None:
    state = _after(_state(), _told(45, 1), _told(45, 2, message="Ch 1 caused by previous Xid 79"))
    assert {fault.caused_by for fault in state.faults} == {None, "Xid79"}


def test_a_pool_decides_what_a_fault_does_to_its_nodes() -> None:
    strict = _state(overrides={"13": XidPolicy.NODE_NO_SCHEDULE, "79": XidPolicy.EVENT, "31": XidPolicy.NODE_ALERT})
    state = _after(strict, _told(13), _told(79), _told(31))
    assert state.standing.no_schedule_reasons == ("Foreign", "Xid13")
    assert _holding(state) == {"Xid13", "Xid31"}
    assert _unhealthy(state) == set()


def test_a_gpu_is_placed_by_its_address_and_by_nothing_that_looks_alike() -> None:
    reported = (
        _told(48, 1, "0000:30:00"),
        _told(46, 2, "", message="one"),
        _told(46, 3, "", message="two"),
        replace(_told(62, 4), device_id=DeviceId("GPU-gone")),
    )
    state = _after(_state(), *reported)
    assert _unhealthy(state) == set()
    assert len(state.faults) == 4
    assert _holding(state) == {"Xid46", "Xid48", "Xid62"}
    switch = ToldFault(
        fault=Fault(
            kind=FaultKind.SXID, code=20034, address="0000:10:00.0", pci="00000000:10:00.0", message="", is_fatal=True
        ),
        sequence=9,
        boot_id=BOOT,
    )
    assert _unhealthy(_after(state, switch)) == set()


def test_a_fault_ends_with_its_card_and_the_new_one_in_its_place_starts_clean() -> None:
    state = _after(_state(), _told(48), _told(79, 2))
    new = _device("GPU-new", pci_bus_id="00000000:10:00.0")
    devices = {**{name: each for name, each in state.devices.items() if name != "GPU-a"}, new.id: new}
    swapped = replace(state, devices=devices, health=(), inventory_at=NOW + timedelta(seconds=1))
    change = settle(swapped, NOW)
    assert change is not None
    after = written(swapped, change)
    assert {fault.code: fault.end for fault in after.faults} == {48: FaultEnd.REPLACED, 79: None}
    assert _unhealthy(after) == set()
    assert settle(after, NOW) is None
    repeated = replace(_told(48), device_id=DeviceId("GPU-a"))
    assert record(after, [repeated], NOW) is None


def test_a_gpu_that_was_gone_for_a_time_comes_back_into_its_quarantine() -> None:
    state = _after(_state(), _told(48))
    devices = {name: each for name, each in state.devices.items() if name != "GPU-a"}
    gone = replace(state, devices=devices, health=(), inventory_at=NOW + timedelta(seconds=1))
    assert settle(gone, NOW) is None
    back = replace(gone, devices=_state().devices)
    assert _unhealthy(written(back, settle(back, NOW))) == {"GPU-a"}


def test_an_operators_word_stands_beside_what_a_log_told_and_both_end_with_his() -> None:
    state = _after(_state(), _told(48))
    held = written(state, put_in_quarantine(state, DeviceId("GPU-a"), NOW, by="me", reason="smoke"))
    assert {row.source for row in held.health} == {HealthSource.XID, HealthSource.OPERATOR}
    assert put_in_quarantine(held, DeviceId("GPU-a"), NOW, by="other", reason="smoke") is None
    reset = end_faults(held.faults, lambda fault: fault.code == 48, FaultEnd.RESET, NOW)
    still = written(held, settle(held, NOW, write=reset))
    assert _unhealthy(still) == {"GPU-a"}
    assert _unhealthy(written(still, clear(still, DeviceId("GPU-a"), NOW, by="me", reason=None))) == set()


def test_what_an_inventory_shows_is_not_an_operators_to_clear() -> None:
    held = written(_state(), put_in_quarantine(_state(), DeviceId("GPU-a"), NOW, by="me", reason="x"))
    shown = replace(held.health[0], source=HealthSource.INVENTORY, cause="RemapPending", reason="RowRemapPending")
    state = replace(held, health=(*held.health, shown))
    change = clear(state, DeviceId("GPU-a"), NOW, by="me", reason=None)
    assert [row.health.source for row in change.health.ended if change is not None] == [HealthSource.OPERATOR]  # type: ignore[union-attr]
    assert _unhealthy(written(state, change)) == {"GPU-a"}


_PLACES = st.sampled_from(["0000:10:00", "0000:20:00", "0000:30:00", ""])
_ANY = st.builds(
    _told,
    st.sampled_from([13, 31, 45, 46, 48, 54, 63, 64, 74, 79, 94, 95, 154, 999]),
    st.integers(0, 9),
    _PLACES,
    st.sampled_from(
        ["", "from 0x0 (a) to 0x1 (b)", "changed from 0x0 (a) to 0x2 (b)", "changed from 0x1 (a) to 0x0 (b)"]
    ),
    mig=st.sampled_from([None, MigInstance(1, 0), MigInstance(2)]),
)


@settings(max_examples=150)
@given(st.lists(st.one_of(st.lists(_ANY, max_size=4), st.sampled_from(["clear", "reset", "hold"])), max_size=8))
def test_whatever_happens_quarantines_and_conditions_are_those_of_what_holds(steps: list[Any]) -> None:
    state = _state()
    for number, step in enumerate(steps):
        now = NOW + timedelta(minutes=number)
        if step == "clear":
            change = clear(state, DeviceId("GPU-a"), now, by="me", reason=None)
        elif step == "reset":
            over = end_faults(state.faults, lambda fault: fault.device_id == "GPU-b", FaultEnd.RESET, now)
            change = settle(state, now, write=over)
        elif step == "hold":
            change = put_in_quarantine(state, DeviceId("GPU-b"), now, by="me", reason="held")
        else:
            change = record(state, step, now)
        state = written(state, change)
        assert settle(state, now) is None
        if isinstance(step, list):
            assert record(state, step, now + timedelta(seconds=1)) is None
        live = {fault.condition for fault in state.faults if fault.holds}
        assert live == _holding(state)
        for row in state.health:
            has_cause = any(fault.holds and fault.cause == row.cause for fault in state.faults)
            assert has_cause or row.source is HealthSource.OPERATOR
        for fault in state.faults:
            quarantines = fault.policy in {XidPolicy.QUARANTINE, XidPolicy.QUARANTINE_AND_DRAIN}
            if fault.holds and quarantines and fault.device_id in state.devices:
                assert not state.devices[DeviceId(str(fault.device_id))].healthy
        conditions = state.standing.conditions.values()
        away = {each.type for each in conditions if each.no_schedule and each.status is ConditionStatus.TRUE}
        assert set(state.standing.no_schedule_reasons) == away | {"Foreign"}
        assert away <= {"Xid79", "Xid95", "Xid154"}
