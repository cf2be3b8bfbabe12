"""Runs of remediation, and how many of them left a fault as it was (rules 10 and 16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from domain.ids import CommandId, DeviceId, NodeId, RunId, TenantId
from domain.xid_rules import XidRemedy

RUNS_MAX: Final = 2
"""Runs that may leave a fault as it is, or see it again; then an operator is asked."""
RELAPSE_WITHIN: Final = timedelta(hours=24)
"""A fault that comes back so soon after a run was not cleared by it."""
RETRY_AFTER: Final = timedelta(minutes=10)
"""What a run did not clear is left alone for so long: what the next inventory says of it may be on its way."""

FaultKey = tuple[str, DeviceId | None]
"""A fault over boots and restarts: the condition that it raises, and the device where it is known which one."""


class RemediationState(StrEnum):
    """Where a run of remediation is on its way."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    UNCLEARED = "uncleared"
    """It was done, and the GPU is not healthy for it."""
    FAILED = "failed"
    """It was not done."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A fault that holds; `remedy` None where nothing here ends it, `boot_id` None where it is of no boot."""

    condition: str
    device_id: DeviceId | None
    remedy: XidRemedy | None
    boot_id: str | None
    since: datetime

    @property
    def key(self) -> FaultKey:
        """What it is over boots."""
        return self.condition, self.device_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run: for which faults, in which boot it began, and its command; without one nothing had to be done.

    `attempt` counts from 1 the runs for the fault that had most of them.
    """

    id: RunId
    tenant_id: TenantId
    node_id: NodeId
    remedy: XidRemedy
    device_id: DeviceId | None
    faults: tuple[FaultKey, ...]
    boot_id: str | None
    attempt: int
    state: RemediationState
    command_id: CommandId | None
    reason: str | None
    started_at: datetime
    finished_at: datetime | None
    escalated_at: datetime | None


def is_for(run: Run, need: Need) -> bool:
    """Say whether a run was for this fault. What a reboot ends is the node's, whichever of its GPUs told of it."""
    if need.remedy is XidRemedy.REBOOT:
        return any(condition == need.condition for condition, _ in run.faults)
    return need.key in run.faults


def uncleared_runs(need: Need, runs: Sequence[Run]) -> list[Run]:
    """Return the runs that did not clear a fault, the last first: it still holds, or was back within a day.

    What was before the node was left to an operator does not count.
    """
    found: list[Run] = []
    back_at = need.since
    for run in runs:
        if run.escalated_at is not None:
            break
        was_done = run.command_id is not None and run.state in {RemediationState.SUCCEEDED, RemediationState.UNCLEARED}
        if not was_done or run.finished_at is None or not is_for(run, need):
            continue
        if back_at - run.finished_at > RELAPSE_WITHIN:
            break
        found.append(run)
        back_at = run.started_at
    return found


def is_settling(need: Need, runs: Sequence[Run], now: datetime) -> bool:
    """Say whether a fault of before the last run for it may only not have been seen to be gone yet."""
    run = next((run for run in runs if is_for(run, need) and run.finished_at is not None), None)
    if run is None or run.finished_at is None or run.escalated_at is not None:
        return False
    return need.since <= run.finished_at and now < run.finished_at + RETRY_AFTER
