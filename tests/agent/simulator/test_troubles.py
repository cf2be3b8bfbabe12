"""Each trouble of a made-up machine: what its agent reports of it, what its inventory shows, and what puts it right."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.simulator.gpus import gpu_uuid, gpus_section
from agent.simulator.material import Material
from agent.simulator.node import (
    LOG_RECORDS_MAX,
    Change,
    ChangeKind,
    NodeState,
    applied,
    boot_id,
    ending_of,
    first_state,
)
from agent.simulator.sections import sections_of
from agent.simulator.status import status_of
from agent.simulator.troubles import COURSES, Ending, Trouble, slots_of
from agent.wire_status import ReportedXid, StatusReport, XidKind
from domain.documents.gpus import Enumeration
from domain.fault_scan import SeenFault
from domain.kernel_faults import Fault, statements
from domain.sections import decode, encode
from domain.xid_verdict import Circumstances, judge

NOW = datetime(2031, 5, 6, tzinfo=UTC)
CODES = {
    Trouble.DOUBLE_BIT_ERROR: [48],
    Trouble.FALLEN_OFF: [79],
    Trouble.UNCONTAINED: [95],
    Trouble.REMAP_PENDING: [63],
    Trouble.REMAP_FAILED: [64],
    Trouble.CONTAINED: [94, 43, 45],
    Trouble.PROGRAM_FAULT: [13, 31],
    Trouble.GSP_TIMEOUT: [119],
    Trouble.NVLINK: [74],
    Trouble.NVLINK5: [149],
    Trouble.RESET_REQUIRED: [154],
    Trouble.SWITCH: [20034],
}
CONDITIONS = {
    Trouble.DOUBLE_BIT_ERROR: "Xid48",
    Trouble.FALLEN_OFF: "Xid79",
    Trouble.UNCONTAINED: "Xid95",
    Trouble.REMAP_PENDING: "RowRemapPending",
    Trouble.REMAP_FAILED: "RowRemapFailed",
    Trouble.GSP_TIMEOUT: "Xid119",
    Trouble.NVLINK: "Xid74",
    Trouble.NVLINK5: "Xid149",
    Trouble.RESET_REQUIRED: "Xid154",
}
IN_INVENTORY = {
    Trouble.FALLEN_OFF,
    Trouble.REMAP_PENDING,
    Trouble.REMAP_FAILED,
    Trouble.NVLINK,
    Trouble.NVLINK5,
    Trouble.VOLATILE_ECC,
    Trouble.FABRIC_FAILED,
    Trouble.OLD_DRIVER,
}
SAID = {
    Trouble.CPU_PRESSURE: ("cpu", 80),
    Trouble.STEAL: ("steal", 20),
    Trouble.MEMORY_PRESSURE: ("memory", 20),
    Trouble.DISK_PRESSURE: ("io", 60),
}


def machine_for(trouble: Trouble) -> tuple[NodeState, int]:
    """Return the first machine of the fleet that can have it, and its last part that can."""
    states = (first_state(Material(1, node)) for node in range(20))
    return next((state, slots - 1) for state in states if (slots := slots_of(state.server, trouble)))


def begun(trouble: Trouble) -> tuple[NodeState, NodeState, Change]:
    state, slot = machine_for(trouble)
    change = Change(state.index, ChangeKind.TROUBLE, slot, trouble)
    return state, applied(state, change), change


def reported(state: NodeState) -> StatusReport:
    material = Material(1, state.index)
    return status_of(material, state, "node", boot_id(material, state.boots), NOW)


def faults(state: NodeState) -> tuple[ReportedXid, ...]:
    xids = reported(state).xids
    assert xids is not None
    return xids


def sections(state: NodeState) -> dict[str, bytes]:
    found = sections_of(Material(1, state.index), state)
    for name, section in found.items():
        assert decode(name, encode(section)) == section
    return {name: encode(section) for name, section in found.items()}


@pytest.mark.parametrize("trouble", Trouble)
def test_a_trouble_is_reported_with_the_codes_of_its_part(trouble: Trouble) -> None:
    state, troubled, change = begun(trouble)
    told = faults(troubled)
    assert [xid.code for xid in told] == CODES.get(trouble, [])
    for xid in told:
        is_switch = trouble is Trouble.SWITCH
        assert xid.kind is (XidKind.SXID if is_switch else XidKind.XID)
        uuid = gpu_uuid(Material(1, state.index), state, change.slot)
        assert xid.device_id == (None if is_switch else uuid)
        assert xid.message
    assert faults(state) == ()


@pytest.mark.parametrize("trouble", CODES)
def test_a_fault_is_judged_as_its_trouble_says(trouble: Trouble) -> None:
    _, troubled, _ = begun(trouble)
    driver = gpus_section(Material(1, troubled.index), troubled).driver_version
    found = [fault for record in troubled.log for fault in statements(record.message) if isinstance(fault, Fault)]
    verdicts = [judge(SeenFault(number=1, line=1, fault=one), Circumstances(driver_version=driver)) for one in found]
    raised = [verdict.condition for verdict in verdicts if verdict.condition]
    assert raised == ([CONDITIONS[trouble]] if trouble in CONDITIONS else [])


@pytest.mark.parametrize("trouble", Trouble)
def test_a_trouble_shows_in_the_inventory_where_hardware_shows_it(trouble: Trouble) -> None:
    state, troubled, _ = begun(trouble)
    changed = {name for name, content in sections(troubled).items() if content != sections(state)[name]}
    shown = {"gpus", "os"} if trouble is Trouble.OLD_DRIVER else {"gpus"}
    assert changed == (shown if trouble in IN_INVENTORY else set())


@pytest.mark.parametrize("trouble", Trouble)
def test_a_trouble_ends_with_what_ends_it_and_leaves_a_machine_in_order(trouble: Trouble) -> None:
    state, troubled, change = begun(trouble)
    end = ending_of(change)
    if COURSES[trouble].ending is Ending.AT_ONCE:
        assert end is None
        assert not troubled.troubles
        return
    assert end is not None
    after = applied(troubled, end)
    assert not after.troubles
    renewed = trouble is Trouble.REMAP_FAILED
    assert (sections(after) == sections(state)) is not renewed
    assert [xid.message for xid in faults(after)] == (
        ["GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"]
        if trouble is Trouble.RESET_REQUIRED
        else []
    )
    rested = reported(after)
    assert (rested.conditions, rested.pressure) == ((), reported(state).pressure)


@pytest.mark.parametrize("trouble", SAID)
def test_pressure_is_above_its_threshold_while_it_lasts(trouble: Trouble) -> None:
    state, troubled, _ = begun(trouble)
    name, threshold = SAID[trouble]
    assert getattr(reported(troubled).pressure, name) > threshold
    assert getattr(reported(state).pressure, name) < threshold / 2


def test_daemons_tell_their_conditions() -> None:
    for trouble, kind in (
        (Trouble.REBOOT_REQUIRED, "RebootRequired"),
        (Trouble.FABRIC_MANAGER_DOWN, "FabricManagerDown"),
    ):
        _, troubled, _ = begun(trouble)
        assert [condition.type for condition in reported(troubled).conditions or ()] == [kind]


def test_a_skewed_clock_is_ahead() -> None:
    state, troubled, _ = begun(Trouble.CLOCK_SKEW)
    assert reported(state).sent_at == NOW
    sent_at = reported(troubled).sent_at
    assert sent_at is not None
    assert sent_at - NOW > timedelta(seconds=10)


def test_a_gpu_that_fell_off_is_listed_as_lost_and_makes_no_other_missing() -> None:
    state, troubled, change = begun(Trouble.FALLEN_OFF)
    material = Material(1, state.index)
    section = gpus_section(material, troubled)
    assert section.enumeration is Enumeration.INCOMPLETE
    assert section.reason == f"GPU {state.server.gpu_places[change.slot].pci_bus_id} is lost"
    assert [gpu.uuid for gpu in section.gpus if gpu.lost] == [gpu_uuid(material, state, change.slot)]


def test_equal_faults_of_a_boot_are_told_as_one_and_as_the_newest() -> None:
    _, troubled, change = begun(Trouble.DOUBLE_BIT_ERROR)
    (once,), (twice,) = faults(troubled), faults(applied(troubled, change))
    assert (once.count, twice.count) == (1, 2)
    assert int(twice.sequence) > int(once.sequence)


def test_a_reset_forgets_its_gpus_faults_only_and_what_follows_is_newer() -> None:
    _, troubled, change = begun(Trouble.DOUBLE_BIT_ERROR)
    other = Change(change.node, ChangeKind.TROUBLE, 0, Trouble.GSP_TIMEOUT)
    both = applied(troubled, other)
    reset = applied(both, Change(change.node, ChangeKind.GPU_RESET, change.slot))
    assert [xid.code for xid in faults(reset)] == [119]
    again = applied(reset, change)
    assert int(faults(again)[-1].sequence) > max(int(xid.sequence) for xid in faults(both))


def test_a_reset_that_does_not_help_leaves_what_the_log_told() -> None:
    _, troubled, change = begun(Trouble.REMAP_FAILED)
    assert applied(troubled, Change(change.node, ChangeKind.GPU_RESET, change.slot)) == troubled


def test_a_reboot_begins_another_log_in_another_boot() -> None:
    _, troubled, change = begun(Trouble.FALLEN_OFF)
    after = applied(applied(troubled, Change(change.node, ChangeKind.REBOOTED)), change)
    (before_it,), (after_it,) = faults(troubled), faults(after)
    assert after_it.boot_id != before_it.boot_id
    assert after_it.sequence == before_it.sequence


def test_a_card_that_took_anothers_place_is_told_by_its_own_uuid() -> None:
    _, troubled, change = begun(Trouble.REMAP_FAILED)
    replaced = applied(troubled, Change(change.node, ChangeKind.GPU_REPLACED, change.slot))
    assert faults(applied(replaced, change))[0].device_id != faults(troubled)[0].device_id


def test_the_log_is_bounded() -> None:
    state, slot = machine_for(Trouble.PROGRAM_FAULT)
    for _ in range(LOG_RECORDS_MAX):
        state = applied(state, Change(state.index, ChangeKind.TROUBLE, slot, Trouble.PROGRAM_FAULT))
    assert len(state.log) == LOG_RECORDS_MAX
    assert {xid.count for xid in faults(state)} == {LOG_RECORDS_MAX // 2}
