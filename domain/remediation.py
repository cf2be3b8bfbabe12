"""Remediation: what a node's faults need, when a run of it is begun, and what became of it (rules 10 and 16).

Everything is decided from rows, so that it may be decided at any time: a run that is open is followed, a fault whose
boot is over needs no second reboot, and one that runs did not clear is left to an operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.command_kinds import GPU_RESET, NODE_REBOOT
from domain.commands import OPEN, CommandState
from domain.ids import DeviceId, NodeId, TenantId
from domain.node import SETTLED_STATES, ProvisionState, Trust
from domain.node_fault import NodeFault
from domain.remediation_run import RUNS_MAX, Need, RemediationState, Run, is_settling, uncleared_runs
from domain.xid_rules import XidRemedy

CONDITION: Final = "Remediating"
"""Keeps new work off a node while a run of it is open."""
START_WITHIN: Final = timedelta(minutes=10)
"""How long a command of ours may be started. A reservation that begins sooner holds its node already."""
CONFIRM_WITHIN: Final = timedelta(minutes=15)
"""How long after its command a run waits for the node to show that it helped."""
COMMANDS: Final = {XidRemedy.REBOOT: NODE_REBOOT, XidRemedy.GPU_RESET: GPU_RESET}
"""The remedies that are commands; another one is an operator's business."""

BOOT_OVER: Final = "boot-over"
NOT_REBOOTED: Final = "not-rebooted"
STILL_FAULTY: Final = "still-faulty"
NO_INVENTORY: Final = "no-inventory"
NOT_OURS: Final = "not-the-platforms"
NOT_CLEARED: Final = "not-cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is known of an open run: its command, whether an inventory of after it is applied, and what that shows."""

    state: CommandState
    reason: str | None
    started_at: datetime | None
    finished_at: datetime | None
    is_seen: bool
    is_healthy: bool
    up_to: int | None = None
    """The place in the kernel log at which the GPU was reset; what stands later there came after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node with all that decides of its remediation; `runs` are its newest, the last first.

    `is_held` says that an allocation holds it, now or soon; `is_commanded` that such a command is under way already, or
    no more commands are taken.
    """

    node_id: NodeId
    tenant_id: TenantId
    boot_id: str | None
    trust: Trust
    provision_state: ProvisionState
    is_connected: bool
    in_maintenance: bool
    is_held: bool
    is_commanded: bool
    does: frozenset[str] | None = None
    """The kinds of commands that its agent does; None where it is too old to say."""
    needs: tuple[Need, ...] = ()
    runs: tuple[Run, ...] = ()
    progress: Progress | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the platform may do anything with it."""
        return self.trust is not Trust.TENANT_CONTROLLED and self.provision_state is not ProvisionState.RETIRED

    @property
    def open_run(self) -> Run | None:
        """The run that is open."""
        return next((run for run in self.runs if run.finished_at is None), None)

    @property
    def is_free(self) -> bool:
        """Whether it may be taken out now; what an adopting node does is for its acceptance to say."""
        is_settled = self.provision_state in SETTLED_STATES
        return is_settled and self.is_connected and not self.is_held and not self.is_commanded


@dataclass(frozen=True, slots=True)
class Begin:
    """Open a run with its command."""

    remedy: XidRemedy
    device_id: DeviceId | None
    needs: tuple[Need, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class Outlived:
    """Note a run that succeeded without a command: the node is in another boot than these faults."""

    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the open run."""

    run: Run
    state: RemediationState
    reason: str | None = None
    escalates: bool = False


@dataclass(frozen=True, slots=True)
class Escalate:
    """Leave the node to an operator: runs did not clear a fault. The last of them says so."""

    run: Run
    reason: str = NOT_CLEARED


Step = Begin | Outlived | Finish | Escalate


def decide(candidate: Candidate, now: datetime) -> Step | None:
    """Decide the next step of a node; None while there is none.

    Whether its pool can spare the node for a Begin is not decided here.
    """
    run = candidate.open_run
    if run is not None:
        return _follow(candidate, run, now)
    if not candidate.is_ours:
        return None
    outlived = tuple(need for need in candidate.needs if _is_over(need, candidate.boot_id))
    if outlived:
        return Outlived(outlived)
    if candidate.in_maintenance:
        return None
    needs = [need for need in candidate.needs if need.remedy in COMMANDS and _can(candidate, need.remedy)]
    due = [need for need in needs if not is_settling(need, candidate.runs, now)]
    for need in due:
        tried = uncleared_runs(need, candidate.runs)
        if len(tried) >= RUNS_MAX:
            return Escalate(tried[0])
    return _beginning(due, candidate.runs) if due and candidate.is_free else None


def is_cleared(fault: NodeFault, run: Run, candidate: Candidate) -> bool:
    """Say whether a run that succeeded ended a fault: one of its GPU, or of another boot than the present one.

    What the log told after the GPU was reset came after it, whenever the agent says that it is done.
    """
    progress = candidate.progress
    if candidate.boot_id is not None and run.remedy is XidRemedy.REBOOT:
        return fault.boot_id != candidate.boot_id
    if progress is None:
        return False
    if run.remedy is XidRemedy.REBOOT:
        return progress.finished_at is not None and fault.last_at <= progress.finished_at
    if fault.device_id != run.device_id or fault.is_of_node:
        return False
    if progress.up_to is not None:
        return fault.sequence <= progress.up_to
    return progress.started_at is not None and fault.last_at <= progress.started_at


def _is_outlived(run: Run, candidate: Candidate) -> bool:
    """Say whether the node is in another boot than a run began in, whoever rebooted it."""
    return run.boot_id is not None and candidate.boot_id not in {None, run.boot_id}


def _is_over(need: Need, boot_id: str | None) -> bool:
    return None not in {need.boot_id, boot_id} and need.boot_id != boot_id


def _can(candidate: Candidate, remedy: XidRemedy) -> bool:
    """Say whether the node's agent does what a remedy asks for: what it cannot do is no run that failed."""
    return candidate.does is None or COMMANDS[remedy] in candidate.does


def _beginning(needs: Sequence[Need], runs: Sequence[Run]) -> Begin:
    """Choose the remedy: a reboot ends whatever a reset does, and a reset is of one GPU."""
    reboots = any(need.remedy is XidRemedy.REBOOT for need in needs)
    first = min(needs, key=lambda need: (need.since, need.key[0], str(need.device_id)))
    covered = tuple(need for need in needs if reboots or need.device_id == first.device_id)
    return Begin(
        remedy=XidRemedy.REBOOT if reboots else XidRemedy.GPU_RESET,
        device_id=None if reboots else first.device_id,
        needs=covered,
        attempt=1 + max(len(uncleared_runs(need, runs)) for need in covered),
    )


def _follow(candidate: Candidate, run: Run, now: datetime) -> Finish | None:
    if not candidate.is_ours:
        return Finish(run, RemediationState.CANCELLED, NOT_OURS)
    progress = candidate.progress
    if progress is None or progress.state is CommandState.RUNNING:
        return None
    is_waiting = progress.state in OPEN
    # Whoever rebooted it: the boot of its faults is over, and a command that still waits is called off.
    if _is_outlived(run, candidate) and (is_waiting or run.remedy is XidRemedy.REBOOT):
        return Finish(run, RemediationState.SUCCEEDED, BOOT_OVER if is_waiting else None)
    if is_waiting:
        return None
    if progress.state is CommandState.SUCCEEDED:
        return _confirm(run, progress, now)
    state = RemediationState.CANCELLED if progress.state is CommandState.CANCELLED else RemediationState.FAILED
    return Finish(run, state, progress.reason or progress.state.value, escalates=True)


def _confirm(run: Run, progress: Progress, now: datetime) -> Finish | None:
    """Let a command have succeeded only where the node shows it, for as long as that is waited for."""
    is_waited_for = progress.finished_at is None or now < progress.finished_at + CONFIRM_WITHIN
    if run.remedy is XidRemedy.REBOOT:
        if run.boot_id is None:
            return Finish(run, RemediationState.SUCCEEDED)
        return None if is_waited_for else Finish(run, RemediationState.FAILED, NOT_REBOOTED, escalates=True)
    if progress.is_seen:
        return Finish(run, RemediationState.SUCCEEDED) if progress.is_healthy else _uncleared(run, STILL_FAULTY)
    return None if is_waited_for else _uncleared(run, NO_INVENTORY)


def _uncleared(run: Run, reason: str) -> Finish:
    return Finish(run, RemediationState.UNCLEARED, reason)
