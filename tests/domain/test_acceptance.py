"""What is to be done about a node on its way in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.acceptance import (
    ADOPTABLE_STATES,
    AcceptanceCheck,
    Adoption,
    Attempt,
    AttemptState,
    CheckState,
    Continues,
    Fails,
    Outcome,
    Passes,
    Starts,
    Unchanged,
    checks_of,
    decide,
    next_attempt,
    observed,
)
from domain.commands import OPEN_MAX, Command, CommandState
from domain.conditions import ConditionStatus
from domain.errors import Conflict
from domain.ids import CommandId, NodeId, TenantId
from domain.jsonvalue import JsonValue
from domain.node import NodeRole, ProvisionState, Trust
from domain.pool import PoolAgent
from domain.pool_policy import Check, PoolPolicy

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
NODE = NodeId("node_1")
NVML, DCGM = CommandId("cmd_1"), CommandId("cmd_2")
RUNNING = Attempt(
    3, AttemptState.RUNNING, (AcceptanceCheck("diag.nvml", NVML), AcceptanceCheck("inventory.refresh", DCGM))
)
FRESH = Adoption(
    node_id=NODE,
    state=ProvisionState.ADOPTING,
    trust=Trust.PLATFORM,
    heard=True,
    checks=("diag.nvml", "diag.dcgm"),
    gpus_expected=None,
    gpus_found=4,
    has_inventory=True,
    cleared={},
    opened=0,
    attempt=None,
    commands={},
)


def command(
    command_id: CommandId,
    state: CommandState,
    reason: str | None = None,
    result: JsonValue = None,
    **more: Any,  # noqa: ANN401
) -> Command:
    fields: dict[str, Any] = {
        "id": command_id,
        "tenant_id": TenantId("tenant_1"),
        "node_id": NODE,
        "sequence": 1,
        "kind": "diag.nvml" if command_id == NVML else "inventory.refresh",
        "state": state,
        "not_before": None,
        "expires_at": NOW,
        "reason": reason,
        "result": result,
    }
    return Command(**{**fields, **more})


def followed(nvml: Command, other: Command | None = None) -> Outcome:
    refreshed = other or command(DCGM, CommandState.SUCCEEDED)
    return decide(replace(FRESH, attempt=RUNNING, commands={NVML: nvml, DCGM: refreshed}), NOW)


def test_a_connected_node_with_an_inventory_runs_each_check_of_its_pool_once() -> None:
    outcome = decide(FRESH, NOW)
    assert isinstance(outcome, Starts)
    assert outcome.number == 1
    assert [(each.key, dict(each.payload), each.not_after) for each in outcome.requests] == [
        ("acceptance:node_1:1:diag.nvml", {"gpuCount": 4}, NOW + timedelta(minutes=10)),
        ("acceptance:node_1:1:diag.dcgm", {}, NOW + timedelta(minutes=10)),
    ]
    assert observed(outcome).status is ConditionStatus.UNKNOWN
    assert observed(outcome).reason == "Running"


@pytest.mark.parametrize(
    ("expected", "found", "payload"),
    [(8, 4, {"gpuCount": 8}), (0, 4, {"gpuCount": 0}), (None, 0, {"gpuCount": 0}), (None, None, {})],
)
def test_the_policys_count_of_gpus_comes_before_what_was_found(
    expected: int | None, found: int | None, payload: dict[str, int]
) -> None:
    outcome = decide(replace(FRESH, gpus_expected=expected, gpus_found=found), NOW)
    assert isinstance(outcome, Starts)
    assert outcome.requests[0].payload == payload


@pytest.mark.parametrize(
    "change",
    [
        {"heard": False},
        {"heard": False, "checks": ()},
        {"has_inventory": False},
        {"opened": OPEN_MAX - 1},
        {"state": ProvisionState.ADOPTED},
        {"state": ProvisionState.RETIRED},
        {"trust": Trust.TENANT_CONTROLLED},
        {"attempt": Attempt(1, AttemptState.FAILED)},
        {"attempt": Attempt(1, AttemptState.PASSED)},
    ],
)
def test_nothing_begins_unasked_unheard_or_without_an_inventory(change: dict[str, Any]) -> None:
    assert decide(replace(FRESH, **change), NOW) == Unchanged()


def test_without_checks_a_node_passes_at_once_whether_or_not_it_has_an_inventory() -> None:
    waiting = Attempt(2, AttemptState.WAITING)
    for more, gpus in (({}, 4), ({"has_inventory": False, "gpus_found": None}, None)):
        outcome = decide(replace(FRESH, checks=(), attempt=waiting, **more), NOW)  # type: ignore[arg-type]
        assert outcome == Passes(Attempt(2, AttemptState.PASSED), "NoChecks", gpus)


def test_only_a_pool_with_agents_asks_for_checks() -> None:
    policy = PoolPolicy(acceptance=(Check.NVML, Check.DCGM))
    assert checks_of(NodeRole.HOST, PoolAgent.BCD, policy) == ("diag.nvml", "diag.dcgm")
    assert checks_of(NodeRole.HOST, PoolAgent.BCD, PoolPolicy()) == ()
    assert checks_of(NodeRole.HOST, PoolAgent.NONE, policy) == ()
    assert checks_of(NodeRole.SITE, PoolAgent.BCD, policy) == ()
    assert checks_of(NodeRole.HOST, None, None) == ()


def test_an_attempt_goes_on_until_every_check_has_ended() -> None:
    assert followed(command(NVML, CommandState.RUNNING), command(DCGM, CommandState.PENDING)) == Unchanged()
    failed = command(DCGM, CommandState.FAILED)
    outcome = followed(command(NVML, CommandState.ACKNOWLEDGED), failed)
    assert isinstance(outcome, Continues)
    assert [each.state for each in outcome.attempt.checks] == [CheckState.RUNNING, CheckState.FAILED]
    again = replace(FRESH, attempt=outcome.attempt, commands={NVML: command(NVML, CommandState.RUNNING), DCGM: failed})
    assert decide(again, NOW) == Unchanged()


def test_a_node_that_passed_all_checks_is_adopted_with_its_gpus() -> None:
    outcome = followed(command(NVML, CommandState.SUCCEEDED, result={"passed": True, "failures": []}))
    assert isinstance(outcome, Passes)
    assert (outcome.reason, outcome.gpus, outcome.attempt.number) == ("Passed", 4, 3)
    assert {each.state for each in outcome.attempt.checks} == {CheckState.PASSED}
    assert observed(outcome).status is ConditionStatus.FALSE


def failure(check: JsonValue, reason: JsonValue = "r") -> JsonValue:
    return {"passed": False, "failures": [{"check": check, "reason": reason, "gpu": None}]}


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (command(NVML, CommandState.EXPIRED, "not-started"), "Expired"),
        (command(NVML, CommandState.EXPIRED, "no-result"), "Expired"),
        (command(NVML, CommandState.CANCELLED), "diag.nvml:failed"),
        (command(NVML, CommandState.FAILED, "interrupted"), "diag.nvml:failed"),
        (command(NVML, CommandState.FAILED, "unsupported"), "UnsupportedCheck"),
        (command(NVML, CommandState.SUCCEEDED, result=failure("nvml.init")), "diag.nvml:nvml.init"),
        (command(NVML, CommandState.SUCCEEDED, result=failure("ecc.uncorrectable")), "diag.nvml:ecc.uncorrectable"),
        (command(NVML, CommandState.SUCCEEDED, result=failure("no check\n")), "diag.nvml:failed"),
        (command(NVML, CommandState.SUCCEEDED, result=failure(7)), "diag.nvml:failed"),
        (command(NVML, CommandState.SUCCEEDED, result={"passed": "yes"}), "diag.nvml:failed"),
        (command(NVML, CommandState.SUCCEEDED, result=[1]), "diag.nvml:failed"),
        (command(NVML, CommandState.SUCCEEDED), "diag.nvml:failed"),
    ],
)
def test_what_keeps_a_node_out_is_named(ended: Command, reason: str) -> None:
    outcome = followed(ended)
    assert isinstance(outcome, Fails)
    assert (outcome.failed.reason, outcome.failed.command_id) == (reason, NVML)
    assert outcome.attempt.state is AttemptState.FAILED
    said = observed(outcome)
    assert (said.status, said.reason) == (ConditionStatus.TRUE, reason)
    assert (said.message or "").startswith("attempt 3")


def test_a_run_of_dcgm_names_no_check_in_its_reason_and_all_of_them_in_its_message() -> None:
    ended = command(NVML, CommandState.SUCCEEDED, result=failure("memory", "bad"), kind="diag.dcgm")
    outcome = followed(ended)
    assert isinstance(outcome, Fails)
    assert (observed(outcome).reason, observed(outcome).message) == ("diag.dcgm:failed", "attempt 3: memory: bad")


def test_of_several_checks_that_failed_the_first_is_told_with_its_words() -> None:
    nvml = command(NVML, CommandState.SUCCEEDED, result=failure("pcie.link", "8 of 16 lanes"))
    outcome = followed(nvml, command(DCGM, CommandState.EXPIRED))
    assert isinstance(outcome, Fails)
    assert observed(outcome).message == "attempt 3: pcie.link: 8 of 16 lanes"
    assert [each.reason for each in outcome.attempt.checks] == ["diag.nvml:pcie.link", "Expired"]


def test_an_attempt_ends_as_a_tenant_takes_control_whatever_its_agent_says_by_then() -> None:
    passed = command(NVML, CommandState.SUCCEEDED, result={"passed": True})
    taken = replace(FRESH, trust=Trust.TENANT_CONTROLLED, attempt=RUNNING, commands={NVML: passed})
    outcome = decide(taken, NOW)
    assert isinstance(outcome, Fails)
    assert outcome.failed == replace(RUNNING.checks[0], state=CheckState.FAILED, reason="TenantControlled")
    assert decide(replace(taken, attempt=outcome.attempt, trust=Trust.PLATFORM), NOW) == Unchanged()


def test_a_word_of_an_agent_never_makes_a_message_too_long() -> None:
    outcome = followed(command(NVML, CommandState.SUCCEEDED, result=failure("pcie.link", "x" * 5000)))
    assert isinstance(outcome, Fails)
    assert len(observed(outcome).message or "") == 1000


def test_an_operator_begins_the_next_attempt_unless_one_is_under_way() -> None:
    def asked(state: ProvisionState, newest: Attempt | None) -> int | None:
        return next_attempt(NODE, state, Trust.PLATFORM, newest)

    adopting, adopted = ProvisionState.ADOPTING, ProvisionState.ADOPTED
    assert asked(adopted, None) == 1
    assert asked(adopted, Attempt(4, AttemptState.PASSED)) == 5
    assert asked(adopting, Attempt(4, AttemptState.FAILED)) == 5
    for newest in (None, Attempt(4, AttemptState.WAITING), RUNNING):
        assert asked(adopting, newest) is None


@pytest.mark.parametrize("state", [each for each in ProvisionState if each not in ADOPTABLE_STATES])
def test_a_node_that_is_elsewhere_in_its_life_is_not_adopted(state: ProvisionState) -> None:
    with pytest.raises(Conflict, match=state.value):
        next_attempt(NODE, state, Trust.PLATFORM, None)


def test_a_tenants_machine_is_not_adopted() -> None:
    with pytest.raises(Conflict, match="tenant"):
        next_attempt(NODE, ProvisionState.ADOPTED, Trust.TENANT_CONTROLLED, None)


COMMANDS = st.builds(
    command,
    st.just(NVML),
    st.sampled_from(list(CommandState)),
    st.sampled_from([None, "unsupported", "deadline"]),
    st.sampled_from([None, {"passed": True}, failure("gpu.count"), 1, []]),
)
ADOPTIONS = st.builds(
    Adoption,
    node_id=st.just(NODE),
    state=st.sampled_from(list(ProvisionState)),
    trust=st.sampled_from(list(Trust)),
    heard=st.booleans(),
    checks=st.sampled_from([(), ("diag.nvml",), ("diag.nvml", "diag.dcgm")]),
    gpus_expected=st.none() | st.integers(0, 16),
    gpus_found=st.none() | st.integers(0, 16),
    has_inventory=st.booleans(),
    opened=st.integers(0, OPEN_MAX),
    attempt=st.none()
    | st.builds(Attempt, st.integers(1, 9), st.just(AttemptState.WAITING))
    | st.builds(
        Attempt,
        st.integers(1, 9),
        st.sampled_from([AttemptState.RUNNING, AttemptState.PASSED, AttemptState.FAILED]),
        st.just((AcceptanceCheck("diag.nvml", NVML),)),
    ),
    commands=COMMANDS.map(lambda found: {NVML: found}),
)


@given(ADOPTIONS)
def test_what_was_decided_and_written_is_not_decided_again(adoption: Adoption) -> None:
    outcome = decide(adoption, NOW)
    match outcome:
        case Unchanged():
            after = adoption
        case Starts(number=number, requests=requests):
            ids = {CommandId(f"cmd_{place}"): request for place, request in enumerate(requests)}
            checks = tuple(AcceptanceCheck(request.kind, key) for key, request in ids.items())
            issued = {key: command(key, CommandState.PENDING, kind=request.kind) for key, request in ids.items()}
            after = replace(adoption, attempt=Attempt(number, AttemptState.RUNNING, checks), commands=issued)
        case Continues(attempt=attempt) | Fails(attempt=attempt):
            after = replace(adoption, attempt=attempt)
        case Passes(attempt=attempt):
            after = replace(adoption, attempt=attempt, state=ProvisionState.ADOPTED)
    assert decide(after, NOW + timedelta(seconds=1)) == Unchanged()
