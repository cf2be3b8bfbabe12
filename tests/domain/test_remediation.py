"""When a node is taken out for its faults, what came of it, and when it is left to an operator."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.commands import CommandState
from domain.ids import CommandId, DeviceId, NodeId, RunId, TenantId
from domain.kernel_faults import FaultKind
from domain.node import ProvisionState, Trust
from domain.node_fault import NodeFault
from domain.remediation import (
    BOOT_OVER,
    CONFIRM_WITHIN,
    NO_INVENTORY,
    NOT_OURS,
    NOT_REBOOTED,
    STILL_FAULTY,
    Begin,
    Candidate,
    Escalate,
    Finish,
    Outlived,
    Progress,
    decide,
    is_cleared,
)
from domain.remediation_run import RETRY_AFTER, FaultKey, Need, RemediationState, Run, uncleared_runs
from domain.xid_rules import XidPolicy, XidRemedy
from domain.xid_verdict import Scope

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)
GPU: Final = DeviceId("GPU-1")
REBOOT, RESET = XidRemedy.REBOOT, XidRemedy.GPU_RESET
NODE: Final = Candidate(
    node_id=NodeId("node_1"),
    tenant_id=TenantId("tenant_1"),
    boot_id="b1",
    trust=Trust.PLATFORM,
    provision_state=ProvisionState.ADOPTED,
    is_connected=True,
    in_maintenance=False,
    is_held=False,
    is_commanded=False,
)
XID79: Final = Need(condition="Xid79", device_id=GPU, remedy=REBOOT, boot_id="b1", since=T0)
PENDING: Final = Need(condition="RowRemapPending", device_id=GPU, remedy=RESET, boot_id=None, since=T0)
FAULT: Final = NodeFault(
    boot_id="b1",
    key="xid 119",
    kind=FaultKind.XID,
    code=119,
    address="",
    pci=None,
    device_id=GPU,
    mig=None,
    sequence=1,
    count=1,
    message="told",
    policy=XidPolicy.QUARANTINE,
    scope=Scope.GPU,
    rule="xid.119/1",
    cause="Xid119",
    caused_by=None,
    meaning="told",
    recommended_action=None,
    note=None,
    condition="Xid119",
    remedy=RESET,
    since=T0 - HOUR,
    last_at=T0,
)
DONE: Final = Progress(
    state=CommandState.SUCCEEDED, reason=None, started_at=T0, finished_at=T0, is_seen=False, is_healthy=False
)


def _run(
    *faults: FaultKey,
    remedy: XidRemedy = REBOOT,
    started: timedelta = timedelta(),
    finished: timedelta | None = None,
    state: RemediationState = RemediationState.SUCCEEDED,
    escalated: bool = False,
    boot_id: str | None = "b1",
) -> Run:
    return Run(
        id=RunId(f"run_{started}"),
        tenant_id=NODE.tenant_id,
        node_id=NODE.node_id,
        remedy=remedy,
        device_id=GPU if remedy is RESET else None,
        faults=faults or (XID79.key,),
        boot_id=boot_id,
        attempt=1,
        state=state if finished is not None else RemediationState.RUNNING,
        command_id=CommandId("cmd_1"),
        reason=None,
        started_at=T0 + started,
        finished_at=None if finished is None else T0 + finished,
        escalated_at=T0 + finished if escalated and finished is not None else None,
    )


def test_a_fault_that_a_reboot_ends_takes_its_node_out_with_all_that_a_reboot_ends() -> None:
    node = replace(NODE, needs=(PENDING, XID79))
    assert decide(node, T0) == Begin(REBOOT, None, (PENDING, XID79), attempt=1)


def test_a_reset_is_of_the_gpu_that_waits_longest_and_of_no_other() -> None:
    later = replace(PENDING, device_id=DeviceId("GPU-2"), since=T0 + HOUR)
    xid119 = replace(later, condition="Xid119", device_id=GPU, boot_id="b1")
    node = replace(NODE, needs=(later, PENDING, xid119))
    assert decide(node, T0) == Begin(RESET, GPU, (PENDING, xid119), attempt=1)


@pytest.mark.parametrize(
    "hindered",
    [
        replace(NODE, is_held=True),
        replace(NODE, is_connected=False),
        replace(NODE, in_maintenance=True),
        replace(NODE, is_commanded=True),
        replace(NODE, trust=Trust.TENANT_CONTROLLED),
        replace(NODE, provision_state=ProvisionState.ADOPTING),
        replace(NODE, provision_state=ProvisionState.RETIRED),
    ],
)
def test_what_holds_a_node_or_is_not_the_platforms_to_do_is_waited_for(hindered: Candidate) -> None:
    assert decide(replace(hindered, needs=(XID79, PENDING)), T0) is None
    assert decide(replace(NODE, needs=(XID79, PENDING)), T0) is not None


@pytest.mark.parametrize("remedy", [None, XidRemedy.IMEX_RESTART])
def test_what_nothing_here_ends_is_left_alone(remedy: XidRemedy | None) -> None:
    assert decide(replace(NODE, needs=(replace(XID79, remedy=remedy),)), T0) is None


@pytest.mark.parametrize("node", [NODE, replace(NODE, is_held=True, in_maintenance=True, is_connected=False)])
def test_faults_whose_boot_is_over_need_no_second_reboot(node: Candidate) -> None:
    alert = replace(XID79, condition="Xid54", remedy=None)
    node = replace(node, boot_id="b2", needs=(XID79, PENDING, alert))
    assert decide(node, T0) == Outlived((XID79, alert))
    assert decide(replace(node, trust=Trust.TENANT_CONTROLLED), T0) is None
    unknown = replace(NODE, boot_id=None, needs=(replace(XID79, boot_id=None),))
    assert isinstance(decide(unknown, T0), Begin), "of what tells no boot nothing is over"


@pytest.mark.parametrize("state", [CommandState.PENDING, CommandState.ACKNOWLEDGED, CommandState.RUNNING])
def test_a_run_waits_for_its_command(state: CommandState) -> None:
    node = replace(NODE, runs=(_run(),), progress=replace(DONE, state=state))
    assert decide(node, T0) is None


@pytest.mark.parametrize("remedy", [REBOOT, RESET])
@pytest.mark.parametrize("state", [CommandState.PENDING, CommandState.ACKNOWLEDGED])
def test_a_command_that_still_waits_in_another_boot_is_not_run_for_stale_news(
    remedy: XidRemedy, state: CommandState
) -> None:
    run = _run(remedy=remedy)
    node = replace(NODE, boot_id="b2", runs=(run,), progress=replace(DONE, state=state))
    assert decide(node, T0) == Finish(run, RemediationState.SUCCEEDED, BOOT_OVER)
    begun = replace(node, progress=replace(DONE, state=CommandState.RUNNING))
    assert decide(begun, T0) is None


def test_what_an_agent_cannot_do_is_not_asked_of_it() -> None:
    node = replace(NODE, needs=(PENDING,))
    assert isinstance(decide(node, T0), Begin), "an agent too old to say constrains nothing"
    assert decide(replace(node, does=frozenset({"diag.nvml", "node.reboot"})), T0) is None
    assert isinstance(decide(replace(node, does=frozenset({"gpu.reset"})), T0), Begin)


def test_a_reset_ends_what_stands_before_it_in_the_log_whenever_it_was_told() -> None:
    run = _run(PENDING.key, remedy=RESET)
    node = replace(NODE, progress=replace(DONE, up_to=FAULT.sequence))
    late = replace(FAULT, last_at=T0 + HOUR)
    assert is_cleared(late, run, node)
    assert not is_cleared(replace(late, sequence=FAULT.sequence + 1), run, node)


@pytest.mark.parametrize(
    ("command", "state"),
    [
        (CommandState.FAILED, RemediationState.FAILED),
        (CommandState.EXPIRED, RemediationState.FAILED),
        (CommandState.CANCELLED, RemediationState.CANCELLED),
    ],
)
def test_a_run_that_was_not_done_is_left_to_an_operator(command: CommandState, state: RemediationState) -> None:
    run = _run()
    node = replace(NODE, runs=(run,), progress=replace(DONE, state=command, reason="unsupported"))
    assert decide(node, T0) == Finish(run, state, "unsupported", escalates=True)
    assert decide(replace(node, boot_id="b2"), T0) == Finish(run, RemediationState.SUCCEEDED), "it was rebooted"


def test_a_reboot_has_helped_when_its_node_is_heard_in_another_boot() -> None:
    run = _run()
    node = replace(NODE, needs=(XID79,), runs=(run,), progress=DONE)
    assert decide(node, T0) is None
    assert decide(replace(node, boot_id="b2"), T0) == Finish(run, RemediationState.SUCCEEDED)
    late = T0 + CONFIRM_WITHIN
    assert decide(node, late) == Finish(run, RemediationState.FAILED, NOT_REBOOTED, escalates=True)
    silent = _run(boot_id=None)
    assert decide(replace(node, boot_id=None, runs=(silent,)), T0) == Finish(silent, RemediationState.SUCCEEDED)


def test_a_reset_has_helped_when_an_inventory_of_after_it_shows_the_gpu_healthy() -> None:
    run = _run(PENDING.key, remedy=RESET)
    node = replace(NODE, needs=(PENDING,), runs=(run,), progress=DONE)
    assert decide(node, T0) is None
    assert decide(replace(node, boot_id="b2"), T0) is None, "a reboot shows nothing of a GPU"
    healthy = replace(node, progress=replace(DONE, is_seen=True, is_healthy=True))
    assert decide(healthy, T0) == Finish(run, RemediationState.SUCCEEDED)
    faulty = replace(node, progress=replace(DONE, is_seen=True))
    assert decide(faulty, T0) == Finish(run, RemediationState.UNCLEARED, STILL_FAULTY)
    assert decide(replace(node, progress=replace(DONE, is_healthy=True)), T0 + CONFIRM_WITHIN) == Finish(
        run, RemediationState.UNCLEARED, NO_INVENTORY
    )


def test_a_run_of_a_machine_that_is_the_platforms_no_more_is_called_off_without_a_word_on_it() -> None:
    run = _run()
    node = replace(NODE, trust=Trust.TENANT_CONTROLLED, runs=(run,), progress=DONE)
    assert decide(node, T0) == Finish(run, RemediationState.CANCELLED, NOT_OURS)


def test_what_a_run_left_is_looked_at_again_when_an_inventory_may_have_come() -> None:
    run = _run(PENDING.key, finished=HOUR)
    node = replace(NODE, needs=(PENDING,), runs=(run,))
    assert decide(node, run.started_at + HOUR) is None
    assert decide(node, run.started_at + HOUR + RETRY_AFTER) == Begin(RESET, GPU, (PENDING,), attempt=2)
    back = replace(XID79, boot_id="b2", since=T0 + 2 * HOUR)
    after_reboot = replace(NODE, boot_id="b2", needs=(back,), runs=(_run(finished=HOUR),))
    assert decide(after_reboot, T0 + 2 * HOUR) == Begin(REBOOT, None, (back,), attempt=2), "it is another fault"


def test_two_runs_that_did_not_clear_a_fault_leave_its_node_to_an_operator() -> None:
    first = _run(finished=HOUR)
    second = _run(started=20 * HOUR, finished=21 * HOUR)
    back = replace(XID79, boot_id="b3", since=T0 + 40 * HOUR)
    node = replace(NODE, boot_id="b3", needs=(back,), runs=(second, first))
    assert decide(node, back.since) == Escalate(second)
    assert decide(replace(node, is_held=True, is_connected=False), back.since) == Escalate(second)
    assert decide(replace(node, in_maintenance=True), back.since) is None
    other = replace(back, device_id=DeviceId("GPU-2"))
    assert decide(replace(node, needs=(other,)), back.since) == Escalate(second), "it is the node that was rebooted"
    assert isinstance(decide(replace(node, needs=(replace(other, remedy=RESET),)), back.since), Begin)
    told = replace(second, escalated_at=back.since)
    assert decide(replace(node, runs=(told, first)), back.since) == Begin(REBOOT, None, (back,), attempt=1)


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([], 0),
        ([_run(finished=HOUR)], 1),
        ([replace(_run(finished=HOUR), command_id=None)], 0),
        ([_run(finished=HOUR, state=RemediationState.UNCLEARED)], 1),
        ([_run(finished=HOUR, state=RemediationState.CANCELLED)], 0),
        ([_run(("Xid95", GPU), finished=HOUR)], 0),
        ([_run(("Xid79", None), finished=HOUR)], 1),
        ([_run(finished=HOUR, escalated=True)], 0),
        ([_run(started=-30 * HOUR, finished=-25 * HOUR)], 0),
        ([_run(started=-30 * HOUR, finished=-24 * HOUR)], 1),
        ([_run(started=-20 * HOUR, finished=-19 * HOUR), _run(started=-60 * HOUR, finished=-50 * HOUR)], 1),
        ([_run(started=-20 * HOUR, finished=-19 * HOUR), _run(started=-60 * HOUR, finished=-40 * HOUR)], 2),
    ],
)
def test_runs_count_that_did_something_for_this_very_fault_and_had_it_back_within_a_day(
    runs: Sequence[Run], count: int
) -> None:
    assert len(uncleared_runs(XID79, runs)) == count


@pytest.mark.parametrize(
    ("remedy", "change", "is_over"),
    [
        (REBOOT, {}, True),
        (REBOOT, {"boot_id": "b2"}, False),
        (REBOOT, {"device_id": None}, True),
        (RESET, {}, True),
        (RESET, {"boot_id": "b2"}, True),
        (RESET, {"device_id": DeviceId("GPU-2")}, False),
        (RESET, {"last_at": T0 + HOUR}, False),
        (RESET, {"scope": Scope.NODE}, False),
        (RESET, {"scope": Scope.INSTANCE, "mig": "gi1"}, True),
    ],
)
def test_a_reboot_ends_what_is_of_another_boot_and_a_reset_what_its_gpu_told_before(
    remedy: XidRemedy,
    change: dict[str, Any],
    is_over: bool,  # noqa: FBT001
) -> None:
    node = replace(NODE, boot_id="b2", progress=DONE)
    assert is_cleared(replace(FAULT, **change), _run(PENDING.key, remedy=remedy), node) is is_over


def test_of_a_node_that_tells_no_boot_a_reboot_ends_what_was_told_before_it() -> None:
    node = replace(NODE, boot_id=None, progress=DONE)
    assert is_cleared(FAULT, _run(), node)
    assert not is_cleared(replace(FAULT, last_at=T0 + HOUR), _run(), node)


@given(gaps=st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_however_often_a_fault_comes_back_no_more_than_two_runs_in_a_row_see_it_again_within_a_day(
    gaps: list[int],
) -> None:
    """Play a fault that comes back after each run, with an operator who always ends the maintenance at once."""
    runs: list[Run] = []
    now, in_a_row = T0, 0
    for number, gap in enumerate(gaps):
        now += gap * HOUR
        need = replace(XID79, boot_id=f"b{number}", since=now)
        in_a_row = in_a_row + 1 if runs and gap <= 24 else 0
        step = decide(replace(NODE, boot_id=f"b{number}", needs=(need,), runs=tuple(reversed(runs))), now)
        if isinstance(step, Escalate):
            assert in_a_row >= 2
            runs[-1] = replace(runs[-1], escalated_at=now)
            in_a_row = 0
            step = decide(replace(NODE, boot_id=f"b{number}", needs=(need,), runs=tuple(reversed(runs))), now)
        assert isinstance(step, Begin)
        assert step.attempt <= 2
        assert in_a_row < 2
        runs.append(replace(_run(), started_at=now, finished_at=now, state=RemediationState.SUCCEEDED))
