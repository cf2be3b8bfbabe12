"""Durable commands: what a node is told to do once, and every step from there to its result (rule 10).

A step that was taken already changes nothing, so that whoever takes it may repeat it; one that the state forbids is a
Conflict. A finished command stays as it ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from domain.command_kinds import KINDS
from domain.errors import Conflict, InvalidInput
from domain.ids import CommandId, NodeId, TenantId
from domain.jsonvalue import JsonValue
from domain.node import ProvisionState

OPEN_MAX: Final = 64
"""Commands of one node that are not finished."""
VALID: Final = timedelta(hours=1)
"""How long a command may be started where its issuer does not say."""
VALID_MAX: Final = timedelta(days=30)
OWN_KEYS: Final = ("acceptance:", "remediation:")
"""Beginnings of the keys of commands that the server issues by itself: nobody else may take one before it."""


class CommandState(StrEnum):
    """Where a command is on its way."""

    PENDING = "pending"
    ACKNOWLEDGED = "acknowledged"
    """The node's agent has it."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXPIRED = "expired"
    """Not started by its not-after, or started and no result came in time."""
    CANCELLED = "cancelled"


class CommandOutcome(StrEnum):
    """What became of a command that was run."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


OPEN: Final = frozenset({CommandState.PENDING, CommandState.ACKNOWLEDGED, CommandState.RUNNING})
NOT_STARTED: Final = "not-started"
NO_RESULT: Final = "no-result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command. `expires_at` is its not-after, and once it runs the time by which its result is waited for.

    `run_id` is what the agent that runs it calls this run.
    """

    id: CommandId
    tenant_id: TenantId
    node_id: NodeId
    sequence: int
    kind: str
    state: CommandState
    not_before: datetime | None
    expires_at: datetime
    started_at: datetime | None = None
    run_id: str | None = None
    finished_at: datetime | None = None
    reason: str | None = None
    message: str | None = None
    result: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """What is asked for; `payload` as `command_kinds.read_payload` took it."""

    node_id: NodeId
    kind: str
    payload: Mapping[str, Any]
    key: str
    not_before: datetime | None = None
    not_after: datetime | None = None

    def document(self) -> dict[str, JsonValue]:
        """Return the request as it is kept, to know it again by its key."""
        return {
            "nodeId": self.node_id,
            "kind": self.kind,
            "payload": dict(self.payload),
            "notBefore": self.not_before.isoformat() if self.not_before else None,
            "notAfter": self.not_after.isoformat() if self.not_after else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an agent says became of a command. `reason` is one word, `document` whatever the kind yields."""

    outcome: CommandOutcome
    reason: str | None = None
    message: str | None = None
    document: JsonValue = None


def admit(request: CommandRequest, state: ProvisionState, opened: int, now: datetime) -> datetime:
    """Return the not-after of a new command, or raise InvalidInput or Conflict saying why there will be none.

    `opened` is how many commands of the node are not finished.
    """
    not_after = request.not_after or max(request.not_before or now, now) + VALID
    if not_after <= now:
        raise InvalidInput(f"notAfter: {not_after.isoformat()} has passed")
    if not_after > now + VALID_MAX:
        raise InvalidInput(f"notAfter: {not_after.isoformat()}; at most {VALID_MAX.days} days from now are taken")
    if request.not_before is not None and request.not_before >= not_after:
        raise InvalidInput("notBefore: not before notAfter; it could never be started")
    if state is ProvisionState.RETIRED:
        raise Conflict(f"{request.node_id} is retired")
    if opened >= OPEN_MAX:
        raise Conflict(f"{request.node_id} has {opened} commands that are not finished; cancel some of them first")
    return not_after


def is_deliverable(command: Command, now: datetime) -> bool:
    """Say whether the node's agent is to be told of it; of a running one too, which may have lost its result."""
    is_due = command.not_before is None or command.not_before <= now
    return command.state in OPEN and is_due and now < command.expires_at


def acknowledge(command: Command) -> Command:
    """Note that the agent has a command."""
    if command.state is not CommandState.PENDING:
        return command
    return replace(command, state=CommandState.ACKNOWLEDGED)


def start(command: Command, run_id: str, now: datetime) -> Command:
    """Start a command; raises Conflict for one that is finished, is not due, or may not be started any more.

    One that runs may be started again by who runs it, and by nobody else: two agents may speak for one node.
    """
    if command.state is CommandState.RUNNING:
        if command.run_id != run_id:
            raise Conflict(f"{command.id} is run already by another agent of the node, or was by this one")
        return command
    _refuse_finished(command)
    if not is_deliverable(command, now):
        raise Conflict(f"{command.id} may not be started now: it is not due yet, or its not-after has passed")
    run = timedelta(seconds=KINDS[command.kind].run_seconds_max)
    return replace(command, state=CommandState.RUNNING, run_id=run_id, started_at=now, expires_at=now + run)


def complete(command: Command, result: Result, now: datetime) -> Command:
    """Finish a command with its result; the same again changes nothing. Raises Conflict when it ended otherwise.

    One that was not started may be completed as well: that is how an agent declines it.
    """
    finished = replace(
        command,
        state=CommandState(result.outcome.value),
        reason=result.reason,
        message=result.message,
        result=result.document,
        finished_at=command.finished_at or now,
    )
    if command.state not in OPEN:
        if finished != command:
            _refuse_finished(command)
        return command
    if result.outcome is CommandOutcome.SUCCEEDED and command.state is not CommandState.RUNNING:
        raise Conflict(f"{command.id} was not started: it cannot have succeeded")
    return finished


def cancel(command: Command, reason: str | None, now: datetime) -> Command:
    """Call a command off; raises Conflict for one that runs already or is finished."""
    if command.state is CommandState.CANCELLED:
        return command
    _refuse_finished(command)
    if command.state is CommandState.RUNNING:
        raise Conflict(f"{command.id} runs already; its result will tell")
    return replace(command, state=CommandState.CANCELLED, message=reason, finished_at=now)


def expire(command: Command, now: datetime) -> Command:
    """Finish a command whose time is over."""
    if command.state not in OPEN or now < command.expires_at:
        return command
    reason = NO_RESULT if command.state is CommandState.RUNNING else NOT_STARTED
    return replace(command, state=CommandState.EXPIRED, reason=reason, finished_at=now)


def _refuse_finished(command: Command) -> None:
    if command.state not in OPEN:
        raise Conflict(f"{command.id} is {command.state.value} already")
