"""Commands: what may follow what, and when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.command_kinds import KINDS, read_payload
from domain.commands import (
    NO_RESULT,
    NOT_STARTED,
    OPEN,
    OPEN_MAX,
    VALID,
    VALID_MAX,
    Command,
    CommandOutcome,
    CommandRequest,
    CommandState,
    Result,
    acknowledge,
    admit,
    cancel,
    complete,
    expire,
    is_deliverable,
    start,
)
from domain.errors import Conflict, InvalidInput
from domain.ids import CommandId, NodeId, TenantId
from domain.node import ProvisionState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)
PENDING = Command(
    id=CommandId("cmd_1"),
    tenant_id=TenantId("t"),
    node_id=NodeId("node_1"),
    sequence=1,
    kind="diag.nvml",
    state=CommandState.PENDING,
    not_before=None,
    expires_at=LATER,
)
REQUEST = CommandRequest(node_id=NodeId("node_1"), kind="inventory.refresh", payload={}, key="k")
DONE = Result(outcome=CommandOutcome.SUCCEEDED, document={"passed": True})
FAILED = Result(outcome=CommandOutcome.FAILED, reason="unsupported")


def admitted(request: CommandRequest, opened: int = 0) -> datetime:
    return admit(request, ProvisionState.READY, opened, NOW)


def test_a_command_may_be_started_for_an_hour_where_nobody_says_otherwise() -> None:
    assert admitted(REQUEST) == NOW + VALID
    assert admitted(replace(REQUEST, not_before=LATER)) == LATER + VALID
    assert admitted(replace(REQUEST, not_after=LATER)) == LATER


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (replace(REQUEST, not_after=NOW), "notAfter.*has passed"),
        (replace(REQUEST, not_after=NOW + VALID_MAX + timedelta(seconds=1)), "at most 30 days"),
        (replace(REQUEST, not_before=LATER, not_after=LATER), "could never be started"),
    ],
)
def test_a_time_that_cannot_be_kept_is_refused(request_: CommandRequest, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        admitted(request_)


def test_a_retired_node_and_one_with_too_much_to_do_take_no_command() -> None:
    with pytest.raises(Conflict, match="retired"):
        admit(REQUEST, ProvisionState.RETIRED, 0, NOW)
    with pytest.raises(Conflict, match="not finished"):
        admitted(REQUEST, OPEN_MAX)
    admitted(REQUEST, OPEN_MAX - 1)


def test_a_command_is_delivered_from_its_not_before_up_to_its_not_after() -> None:
    bounded = replace(PENDING, not_before=NOW)
    assert not is_deliverable(bounded, NOW - timedelta(seconds=1))
    assert is_deliverable(bounded, NOW)
    assert not is_deliverable(bounded, LATER)
    for state in set(CommandState) - OPEN:
        assert not is_deliverable(replace(bounded, state=state), NOW)


def test_a_command_that_runs_is_waited_for_as_long_as_its_kind_takes() -> None:
    running = start(acknowledge(PENDING), "run", NOW)
    assert (running.state, running.started_at) == (CommandState.RUNNING, NOW)
    assert running.expires_at == NOW + timedelta(seconds=KINDS["diag.nvml"].run_seconds_max)


@pytest.mark.parametrize("state", sorted(set(CommandState) - OPEN))
def test_a_finished_command_is_not_started(state: CommandState) -> None:
    with pytest.raises(Conflict, match=state.value):
        start(replace(PENDING, state=state), "run", NOW)


def test_a_command_is_started_neither_early_nor_late() -> None:
    for early_or_late in (replace(PENDING, not_before=LATER), replace(PENDING, expires_at=NOW)):
        with pytest.raises(Conflict, match="may not be started"):
            start(early_or_late, "run", NOW)


def test_an_agent_may_decline_what_it_did_not_start_but_not_have_done_it() -> None:
    assert complete(PENDING, FAILED, NOW).reason == "unsupported"
    with pytest.raises(Conflict, match="not started"):
        complete(PENDING, DONE, NOW)


def test_another_result_than_the_first_is_refused() -> None:
    done = complete(start(PENDING, "run", NOW), DONE, NOW)
    assert complete(done, DONE, LATER) == done
    with pytest.raises(Conflict, match="succeeded"):
        complete(done, FAILED, LATER)
    with pytest.raises(Conflict, match="succeeded"):
        complete(done, replace(DONE, document={"passed": False}), LATER)


def test_what_runs_is_started_again_only_by_who_runs_it() -> None:
    running = start(PENDING, "run", NOW)
    assert start(running, "run", LATER) == running
    with pytest.raises(Conflict, match="another"):
        start(running, "another run", NOW)


def test_what_runs_cannot_be_cancelled() -> None:
    with pytest.raises(Conflict, match="runs already"):
        cancel(start(PENDING, "run", NOW), None, NOW)


def test_time_ends_a_command_saying_how_far_it_got() -> None:
    assert expire(PENDING, NOW) == PENDING
    assert expire(PENDING, LATER).reason == NOT_STARTED
    running = start(PENDING, "run", NOW)
    assert expire(running, LATER - timedelta(minutes=6)) == running
    assert expire(running, running.expires_at).reason == NO_RESULT


STEPS = {
    "acknowledge": lambda command, _now: acknowledge(command),
    "start": lambda command, now: start(command, "run", now),
    "succeed": lambda command, now: complete(command, DONE, now),
    "fail": lambda command, now: complete(command, FAILED, now),
    "cancel": lambda command, now: cancel(command, "why", now),
    "expire": expire,
}


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 1500)), max_size=8))
def test_whatever_comes_in_whatever_order_a_command_ends_once_and_every_step_may_be_repeated(
    taken: list[tuple[str, int]],
) -> None:
    command, at = PENDING, NOW
    for name, seconds in taken:
        at += timedelta(seconds=seconds)
        before = command
        try:
            command = STEPS[name](before, at)
        except Conflict:
            continue
        assert STEPS[name](command, at) == command
        if before.state not in OPEN:
            assert command == before
        assert (command.finished_at is None) == (command.state in OPEN)
        if command.state is CommandState.RUNNING and before.state is not CommandState.RUNNING:
            assert at < before.expires_at


@pytest.mark.parametrize(
    ("kind", "document", "said"),
    [
        ("node.explode", {}, "kind: 'node.explode' is none"),
        ("inventory.refresh", {"now": True}, "payload: .*unknown field `now`"),
        ("diag.nvml", {"gpuCount": -1}, "payload.gpuCount: "),
        ("diag.nvml", {"gpuCount": "8"}, "payload.gpuCount: "),
        ("gpu.reset", {}, "payload: .*`deviceId`"),
        ("gpu.reset", {"deviceId": "-i"}, "payload.deviceId: "),
        ("gpu.reset", {"deviceId": "GPU-1\n"}, "payload.deviceId: "),
    ],
)
def test_parameters_are_read_strictly(kind: str, document: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_payload(kind, document)


def test_every_kind_takes_what_it_needs() -> None:
    for kind in KINDS:
        read_payload(kind, {"deviceId": "GPU-1"} if kind == "gpu.reset" else {})
