"""Remediation: nodes whose faults a reboot or a reset of a GPU ends are taken out for it, a few of a pool at a time.

What one look comes to is decided from rows alone (`domain.remediation`), for one pool after another under the pool's
lock, so that its budget holds however many processes look.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, assert_never

from db import remediation as store
from db.commands import Issued, issue, lock_command, lock_target, save_steps
from db.database import Database, Transaction
from db.events import NewEvent, write_events
from db.health_states import health_states, save_health_changes
from db.identifiers import new_id
from db.operator_axes import AxesChange, lock_axes, save_axes
from db.remediation import Scope
from db.standings import save_changes, standings_of
from domain import events
from domain.command_kinds import GPU_RESET
from domain.commands import CommandRequest, CommandState, admit, cancel
from domain.conditions import ConditionStatus, Observed
from domain.disruption import PoolDisruption
from domain.fault_effects import end_faults, settle
from domain.ids import CommandId, RunId
from domain.node import ProvisionState
from domain.node_fault import FaultEnd
from domain.operator_axes import axis_events, maintain
from domain.remediation import (
    BOOT_OVER,
    COMMANDS,
    CONDITION,
    START_WITHIN,
    Begin,
    Candidate,
    Escalate,
    Finish,
    Outlived,
    Step,
    decide,
    is_cleared,
)
from domain.remediation_run import RemediationState, Run
from domain.standing import observe
from domain.xid_rules import XidRemedy
from reconcilers.loop import Activation, Reconciler

PAUSE_SECONDS: Final = 5.0
ISSUER: Final = "remediation"

Decided = tuple[Candidate, Step]


def remediation(database: Database, now: Callable[[], datetime], *, automatic: bool = True) -> Reconciler:
    """Make the reconciler; unless it is automatic it begins nothing, and follows what was begun."""

    async def activate() -> Activation:
        async with database.session() as session:
            scopes = await store.scopes(session)
        done = 0
        for scope in scopes:
            async with database.transaction() as tx:
                if await store.take_turn(tx, scope):
                    done += await _settle(tx, scope, now(), automatic=automatic)
        return Activation(done, more=False)

    return Reconciler("remediation", activate, PAUSE_SECONDS)


async def _settle(tx: Transaction, scope: Scope, now: datetime, *, automatic: bool) -> int:
    """Take every step that a scope is due; returns how many. Only nodes with one are held, and looked at again."""
    pool = await store.disruption_of(tx, scope, now)
    done = await _breaker(tx, scope, pool, now)
    room = pool.room if automatic else 0
    looked = _steps(await store.candidates(tx, await store.nodes_of(tx, scope)), room, now)
    if looked:
        held = await store.lock_nodes(tx, scope, [candidate.node_id for candidate, _ in looked])
        for candidate, step in _steps(await store.candidates(tx, held), room, now):
            await _take(tx, candidate, step, now)
            done += 1
    return done


def _steps(candidates: Sequence[Candidate], room: int, now: datetime) -> list[Decided]:
    """Return the nodes with their next steps: as many of them are taken out as there is room for."""
    decided = [(candidate, step) for candidate in candidates if (step := decide(candidate, now)) is not None]
    begun = [candidate.node_id for candidate, step in decided if isinstance(step, Begin)][:room]
    return [(each, step) for each, step in decided if not isinstance(step, Begin) or each.node_id in begun]


async def _breaker(tx: Transaction, scope: Scope, pool: PoolDisruption, now: datetime) -> int:
    if scope.pool_id is None or pool.is_tripped == (pool.paused_since is not None):
        return 0
    await store.pause_pool(tx, scope.pool_id, now if pool.is_tripped else None)
    told = events.pool_remediation(scope.pool_id, pool)
    await write_events(tx, [NewEvent(scope.tenant_id, None, told.type, told.payload)])
    return 1


async def _take(tx: Transaction, candidate: Candidate, step: Step, now: datetime) -> None:
    match step:
        case Begin():
            await _begin(tx, candidate, step, now)
        case Outlived():
            await _outlive(tx, candidate, step, now)
        case Finish():
            await _finish(tx, candidate, step, now)
        case Escalate():
            await _escalate(tx, step.run, step.reason, now)
        case _:
            assert_never(step)


async def _begin(tx: Transaction, candidate: Candidate, step: Begin, now: datetime) -> None:
    run = replace(
        _new_run(candidate, step.remedy, now),
        device_id=step.device_id,
        faults=tuple(dict.fromkeys(need.key for need in step.needs)),
        attempt=step.attempt,
    )
    run = replace(run, command_id=await _issue(tx, run, now))
    await store.save_run(tx, run)
    await _mark(tx, run, Observed(CONDITION, ConditionStatus.TRUE, run.remedy.value, f"{run.id} is under way"), now)
    await _tell(tx, events.REMEDIATION_STARTED, run)


async def _outlive(tx: Transaction, candidate: Candidate, step: Outlived, now: datetime) -> None:
    run = replace(
        _new_run(candidate, XidRemedy.REBOOT, now),
        faults=tuple(dict.fromkeys(need.key for need in step.needs)),
        boot_id=step.needs[0].boot_id,
        state=RemediationState.SUCCEEDED,
        reason=BOOT_OVER,
        finished_at=now,
    )
    await store.save_run(tx, run)
    await _tell(tx, events.REMEDIATION_STARTED, run)
    await _end_faults(tx, candidate, run, now)
    await _tell(tx, events.REMEDIATION_SUCCEEDED, run)


async def _finish(tx: Transaction, candidate: Candidate, step: Finish, now: datetime) -> None:
    run = replace(step.run, state=step.state, reason=step.reason, finished_at=now)
    await _call_off(tx, run, now)
    await store.save_run(tx, run)
    await _mark(tx, run, Observed(CONDITION, ConditionStatus.FALSE), now)
    if run.state is RemediationState.SUCCEEDED:
        await _end_faults(tx, candidate, run, now)
        await _tell(tx, events.REMEDIATION_SUCCEEDED, run)
    if step.escalates:
        await _escalate(tx, run, None, now)


async def _escalate(tx: Transaction, run: Run, reason: str | None, now: datetime) -> None:
    await store.save_run(tx, replace(run, escalated_at=now))
    axes = await lock_axes(tx, run.tenant_id, run.node_id)
    if axes is not None and axes.maintenance is None:
        # An operator's own reason for it stays.
        why = f"{run.id} ({run.remedy.value}): {reason or run.reason}"
        after = maintain(axes, why, ISSUER, now)
        told = axis_events(axes, after, by=ISSUER, reason=why)
        await save_axes(tx, [AxesChange(run.tenant_id, run.node_id, after, told)])
    await _tell(tx, events.REMEDIATION_ESCALATED, run, reason)


def _new_run(candidate: Candidate, remedy: XidRemedy, now: datetime) -> Run:
    return Run(
        id=RunId(new_id("run")),
        tenant_id=candidate.tenant_id,
        node_id=candidate.node_id,
        remedy=remedy,
        device_id=None,
        faults=(),
        boot_id=candidate.boot_id,
        attempt=1,
        state=RemediationState.RUNNING,
        command_id=None,
        reason=None,
        started_at=now,
        finished_at=None,
        escalated_at=None,
    )


async def _issue(tx: Transaction, run: Run, now: datetime) -> CommandId:
    """Issue a run's command. Its node is held, and what it holds of claims is known for the time that this is valid."""
    target = await lock_target(tx, run.tenant_id, run.node_id)
    if target is None:
        raise RuntimeError(f"{run.node_id} is held and is not there")
    request = CommandRequest(
        node_id=run.node_id,
        kind=COMMANDS[run.remedy],
        payload={"deviceId": run.device_id} if COMMANDS[run.remedy] == GPU_RESET else {},
        key=f"remediation:{run.id}",
        not_after=now + START_WITHIN,
    )
    issued = Issued(
        id=CommandId(new_id("cmd")),
        by=ISSUER,
        request_id=run.id,
        not_after=admit(request, ProvisionState(target.provision_state), target.opened, now),
    )
    command = await issue(tx, run.tenant_id, request, issued)
    if command is None:
        raise RuntimeError(f"{request.key} was taken before its run was made")
    return command.id


async def _call_off(tx: Transaction, run: Run, now: datetime) -> None:
    """Cancel the command of a run that is over where the node has not begun it."""
    command = await lock_command(tx, run.tenant_id, run.command_id) if run.command_id is not None else None
    if command is not None and command.state in {CommandState.PENDING, CommandState.ACKNOWLEDGED}:
        await save_steps(tx, [(command, cancel(command, run.reason, now))], by=ISSUER)


async def _mark(tx: Transaction, run: Run, said: Observed, now: datetime) -> None:
    """Keep new work off a node, or no longer: claims are decided under the same lock."""
    known = await standings_of(tx, [(run.tenant_id, run.node_id)], [CONDITION], locked=True)
    changes = [(each, observe(each, [said], now)) for each in known.values()]
    await save_changes(tx, [(each, changed) for each, changed in changes if changed is not None])


async def _end_faults(tx: Transaction, candidate: Candidate, run: Run, now: datetime) -> None:
    """End what a run cleared, and what that raised."""
    (state,) = (await health_states(tx, [run.node_id], locked=True)).values()
    end = FaultEnd.REBOOTED if run.remedy is XidRemedy.REBOOT else FaultEnd.RESET
    over = end_faults(state.faults, lambda fault: is_cleared(fault, run, candidate), end, now)
    change = settle(state, now, write=over)
    if change is not None:
        await save_health_changes(tx, [(state.standing, change)])


async def _tell(tx: Transaction, kind: str, run: Run, reason: str | None = None) -> None:
    event = events.remediation(kind, run, reason)
    await write_events(tx, [NewEvent(run.tenant_id, run.node_id, event.type, event.payload)])
