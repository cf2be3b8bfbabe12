"""Acceptance: what a machine has to show before work is placed on it, attempt by attempt (rule 10).

An attempt runs its pool's checks as commands, once each. What it is to check is fixed as it starts, and how it ended
stays: only an operator begins another one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from domain.command_kinds import DIAG_DCGM, DIAG_NVML, UNSUPPORTED
from domain.commands import OPEN, OPEN_MAX, Command, CommandRequest, CommandState
from domain.conditions import ConditionStatus, Observed
from domain.errors import Conflict
from domain.ids import CommandId, NodeId
from domain.jsonvalue import JsonValue
from domain.node import NodeRole, ProvisionState, Trust
from domain.pool import PoolAgent
from domain.pool_policy import PoolPolicy

ACCEPTANCE_FAILED: Final = "AcceptanceFailed"
START_WITHIN: Final = timedelta(minutes=10)
"""A check that was not started by then has expired."""
ADOPTABLE_STATES: Final = frozenset({ProvisionState.ADOPTING, ProvisionState.ADOPTED})
MESSAGE_LENGTH_MAX: Final = 1000

_RUNNING: Final = "Running"
_PASSED: Final = "Passed"
NO_CHECKS: Final = "NoChecks"
_EXPIRED: Final = "Expired"
_UNSUPPORTED_CHECK: Final = "UnsupportedCheck"
_TENANT_CONTROLLED: Final = "TenantControlled"
_DIAGNOSES: Final = frozenset({DIAG_NVML, DIAG_DCGM})
"""Kinds that are done when they have looked, and say in their result what they think of it."""
_CHECK_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class AttemptState(StrEnum):
    """Where an attempt is."""

    WAITING = "waiting"
    """It begins once the node is heard and its inventory is applied."""
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


class CheckState(StrEnum):
    """What became of a check."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AcceptanceCheck:
    """A check of an attempt: the kind of its command, the command, and why it failed."""

    kind: str
    command_id: CommandId
    state: CheckState = CheckState.RUNNING
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of a node, counted from 1."""

    number: int
    state: AttemptState
    checks: tuple[AcceptanceCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What is known of a node that may be in acceptance.

    `checks` are those of its pool as it is now, `gpus_expected` what the pool's policy says, `gpus_found` what a
    complete enumeration of the applied inventory has. `commands` are those of the newest attempt.
    """

    node_id: NodeId
    state: ProvisionState
    trust: Trust
    heard: bool
    checks: tuple[str, ...]
    gpus_expected: int | None
    gpus_found: int | None
    has_inventory: bool
    cleared: Mapping[str, str]
    """Of GPUs the place in this boot's kernel log up to which an operator called their faults over."""
    opened: int
    """Commands of the node that are not finished."""
    attempt: Attempt | None
    commands: Mapping[CommandId, Command]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """There is nothing to do now."""


@dataclass(frozen=True, slots=True)
class Starts:
    """An attempt starts with these commands."""

    number: int
    requests: tuple[CommandRequest, ...]


@dataclass(frozen=True, slots=True)
class Continues:
    """A check ended and others have not."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Passes:
    """The node is adopted; `gpus` is the number it is accepted with, None where that is not known."""

    attempt: Attempt
    reason: str
    gpus: int | None


@dataclass(frozen=True, slots=True)
class Fails:
    """The node stays as it is until an operator has it tried anew."""

    attempt: Attempt
    failed: AcceptanceCheck
    message: str | None


Outcome = Unchanged | Starts | Continues | Passes | Fails


def checks_of(role: NodeRole, agent: PoolAgent | None, policy: PoolPolicy | None) -> tuple[str, ...]:
    """Return the kinds that a node has to pass: none at a site's own node, and none without a pool that has agents."""
    if role is NodeRole.SITE or agent is None or agent is PoolAgent.NONE or policy is None:
        return ()
    return tuple(check.value for check in policy.acceptance)


def decide(adoption: Adoption, now: datetime) -> Outcome:
    """Say what is to be done about a node; decided again after that, nothing is."""
    if adoption.state is not ProvisionState.ADOPTING:
        return Unchanged()
    attempt = adoption.attempt or Attempt(1, AttemptState.WAITING)
    if adoption.trust is Trust.TENANT_CONTROLLED:
        return _give_up(attempt)
    match attempt.state:
        case AttemptState.WAITING:
            return _begin(adoption, attempt.number, now)
        case AttemptState.RUNNING:
            return _follow(adoption, attempt)
        case AttemptState.PASSED | AttemptState.FAILED:
            return Unchanged()
        case _:
            assert_never(attempt.state)


def next_attempt(node_id: NodeId, state: ProvisionState, trust: Trust, newest: Attempt | None) -> int | None:
    """Return the number of the attempt that an operator's word begins; None while one is under way.

    Raises Conflict where a node is not to be adopted.
    """
    if state not in ADOPTABLE_STATES:
        raise Conflict(f"{node_id} is {state.value}: only what is adopted, or on the way to it, is checked anew")
    if trust is Trust.TENANT_CONTROLLED:
        raise Conflict(f"{node_id} is under a tenant's control: what its agent answers proves nothing")
    if newest is None:
        return None if state is ProvisionState.ADOPTING else 1
    is_open = newest.state in {AttemptState.WAITING, AttemptState.RUNNING}
    return None if is_open and state is ProvisionState.ADOPTING else newest.number + 1


def observed(outcome: Starts | Passes | Fails) -> Observed:
    """Return what an outcome means as a condition."""
    match outcome:
        case Starts(number=number):
            return Observed(ACCEPTANCE_FAILED, ConditionStatus.UNKNOWN, _RUNNING, f"attempt {number}")
        case Passes(attempt=attempt, reason=reason):
            return Observed(ACCEPTANCE_FAILED, ConditionStatus.FALSE, reason, f"attempt {attempt.number}")
        case Fails(attempt=attempt, failed=failed, message=said):
            message = ": ".join(filter(None, (f"attempt {attempt.number}", said)))[:MESSAGE_LENGTH_MAX]
            return Observed(ACCEPTANCE_FAILED, ConditionStatus.TRUE, failed.reason, message)
        case _:
            assert_never(outcome)


def _begin(adoption: Adoption, number: int, now: datetime) -> Starts | Passes | Unchanged:
    if not adoption.heard:
        return Unchanged()
    if not adoption.checks:
        return Passes(Attempt(number, AttemptState.PASSED), NO_CHECKS, adoption.gpus_found)
    if not adoption.has_inventory or adoption.opened + len(adoption.checks) > OPEN_MAX:
        return Unchanged()
    return Starts(number, tuple(_request(adoption, number, kind, now) for kind in adoption.checks))


def _request(adoption: Adoption, number: int, kind: str, now: datetime) -> CommandRequest:
    expected = adoption.gpus_found if adoption.gpus_expected is None else adoption.gpus_expected
    payload: dict[str, JsonValue] = {}
    if kind == DIAG_NVML:
        payload |= {} if expected is None else {"gpuCount": expected}
        payload |= {"cleared": dict(adoption.cleared)} if adoption.cleared else {}
    return CommandRequest(
        node_id=adoption.node_id,
        kind=kind,
        payload=payload,
        key=f"acceptance:{adoption.node_id}:{number}:{kind}",
        not_after=now + START_WITHIN,
    )


def _follow(adoption: Adoption, attempt: Attempt) -> Outcome:
    checks = tuple(_settled(check, adoption.commands[check.command_id]) for check in attempt.checks)
    if any(check.state is CheckState.RUNNING for check in checks):
        return Unchanged() if checks == attempt.checks else Continues(replace(attempt, checks=checks))
    failed = next((check for check in checks if check.state is CheckState.FAILED), None)
    if failed is None:
        passed = Attempt(attempt.number, AttemptState.PASSED, checks)
        return Passes(passed, _PASSED, adoption.gpus_found)
    message = _message(adoption.commands[failed.command_id])
    return Fails(Attempt(attempt.number, AttemptState.FAILED, checks), failed, message)


def _give_up(attempt: Attempt) -> Fails | Unchanged:
    """End what runs as a tenant takes control: its agent's answers would count when the platform takes it back."""
    if attempt.state is not AttemptState.RUNNING:
        return Unchanged()
    checks = tuple(
        replace(check, state=CheckState.FAILED, reason=_TENANT_CONTROLLED)
        if check.state is CheckState.RUNNING
        else check
        for check in attempt.checks
    )
    failed = next(check for check in checks if check.reason == _TENANT_CONTROLLED)
    return Fails(Attempt(attempt.number, AttemptState.FAILED, checks), failed, "a tenant took control of the node")


def _settled(check: AcceptanceCheck, command: Command) -> AcceptanceCheck:
    """Return a check with what became of its command; one that is settled stays."""
    if check.state is not CheckState.RUNNING or command.state in OPEN:
        return check
    reason = _failure(command)
    return replace(check, state=CheckState.FAILED if reason else CheckState.PASSED, reason=reason)


def _failure(command: Command) -> str | None:
    """Return why a finished command is a check that failed; None when it passed."""
    if command.state is CommandState.EXPIRED:
        return _EXPIRED
    if command.state is CommandState.SUCCEEDED:
        if command.kind not in _DIAGNOSES or _result(command).get("passed") is True:
            return None
        named = (check for check, _ in _failures(command) if _CHECK_NAME.fullmatch(check))
        return f"{command.kind}:{next(named, 'failed') if command.kind == DIAG_NVML else 'failed'}"
    return _UNSUPPORTED_CHECK if command.reason == UNSUPPORTED else f"{command.kind}:failed"


def _message(command: Command) -> str | None:
    said = "; ".join(f"{check}: {reason}" for check, reason in _failures(command))
    return said or ": ".join(filter(None, (command.reason, command.message))) or command.state.value


def _failures(command: Command) -> Iterator[tuple[str, str]]:
    """Yield the checks that a diagnosis failed, each with its reason, as far as an agent's result can be read."""
    failures = _result(command).get("failures")
    for each in failures if isinstance(failures, list) else ():
        match each:
            case {"check": str(check), "reason": str(reason)}:
                yield check, reason


def _result(command: Command) -> Mapping[str, JsonValue]:
    return command.result if isinstance(command.result, Mapping) else {}
