"""Acceptance: nodes on their way in run their pool's checks, and are adopted or stay out (rule 10)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, assert_never

from db import acceptance as store
from db.acceptance import SavedAttempt
from db.commands import Issued, issue
from db.connections import Row
from db.database import Database, Transaction
from db.events import NewEvent, write_events
from db.identifiers import new_id
from db.standings import save_changes, standings
from domain import events, sections
from domain.acceptance import (
    ACCEPTANCE_FAILED,
    AcceptanceCheck,
    Adoption,
    Attempt,
    AttemptState,
    Continues,
    Fails,
    Outcome,
    Passes,
    Starts,
    Unchanged,
    checks_of,
    decide,
    observed,
)
from domain.commands import CommandRequest
from domain.documents.gpus import GpusSection
from domain.events import PlannedEvent
from domain.gpu_count import counted_gpus
from domain.ids import CommandId, NodeId, TenantId
from domain.node import NodeRole, ProvisionState, Trust
from domain.pool import PoolAgent
from domain.pool_policy import read_policy
from domain.standing import observe
from reconcilers.loop import Activation, Reconciler
from reconcilers.sweep import sweep

PAUSE_SECONDS: Final = 2.0
ISSUER: Final = "acceptance"
"""Who issues the commands, as they say it."""
_LOCK: Final = 0x666C_6565_7406


@dataclass(frozen=True, slots=True)
class _Step:
    """What was decided of a node, and its row."""

    row: Row
    outcome: Outcome

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.row.node_id)

    @property
    def tenant_id(self) -> TenantId:
        return TenantId(self.row.tenant_id)


@dataclass(frozen=True, slots=True)
class _Written:
    """What a step writes beside the node's condition."""

    attempt: SavedAttempt
    event: PlannedEvent | None = None


def acceptance(database: Database, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler of attempts; of many processes one works at a time."""

    async def settle(tx: Transaction, nodes: Sequence[NodeId]) -> int:
        changing = [step.node_id for step in await _steps(tx, nodes, now())]
        if not changing:
            return 0
        at = now()
        steps = await _steps(tx, await store.lock_adoptions(tx, changing), at)
        if await _take(tx, steps, at):
            database.inventory_pending.set()
        return len(steps)

    async def activate() -> Activation:
        return Activation(await sweep(database, _LOCK, store.adoptions_of_note, settle), more=False)

    return Reconciler("acceptance", activate, PAUSE_SECONDS, database.acceptance_due)


async def _steps(tx: Transaction, nodes: Sequence[NodeId], now: datetime) -> list[_Step]:
    """Decide what is to be done about nodes; those that nothing is to be done about are left out."""
    rows = await store.adoption_facts(tx, nodes)
    attempts = {row.node_id: store.attempt_of(row) for row in rows}
    commands = await store.commands_of_attempts(tx, filter(None, attempts.values()))
    found = []
    for row in rows:
        policy = None if row.policy is None else read_policy(row.policy)
        agent = None if row.agent is None else PoolAgent(row.agent)
        adoption = Adoption(
            node_id=NodeId(row.node_id),
            state=ProvisionState(row.provision_state),
            trust=Trust(row.trust),
            heard=row.heard,
            checks=checks_of(NodeRole(row.role), agent, policy),
            gpus_expected=None if policy is None else policy.expect.gpu_count,
            gpus_found=_gpus(row.gpus),
            has_inventory=row.has_inventory,
            cleared=row.cleared or {},
            opened=row.opened,
            attempt=attempts[row.node_id],
            commands=commands,
        )
        outcome = decide(adoption, now)
        if not isinstance(outcome, Unchanged):
            found.append(_Step(row, outcome))
    return found


def _gpus(content: bytes | None) -> int | None:
    section = None if content is None else sections.decode("gpus", content)
    return counted_gpus(section if isinstance(section, GpusSection) else None)


async def _take(tx: Transaction, steps: Sequence[_Step], now: datetime) -> bool:
    """Write what was decided of nodes that are held; says whether some of them are to be planned anew."""
    written = [(step, await _written(tx, step)) for step in steps]
    await store.save_attempts(tx, [each.attempt for _, each in written], now)
    accepted = {step.node_id: step.outcome.gpus for step in steps if isinstance(step.outcome, Passes)}
    replanned = await store.save_adopted(tx, accepted)
    await _save_conditions(tx, steps, now)
    told = [(step, each.event) for step, each in written if each.event is not None]
    await write_events(tx, [NewEvent(step.tenant_id, step.node_id, event.type, event.payload) for step, event in told])
    return replanned > 0


async def _written(tx: Transaction, step: _Step) -> _Written:
    outcome = step.outcome
    match outcome:
        case Starts(number=number, requests=requests):
            issued = {request.kind: await _issue(tx, step.tenant_id, request) for request in requests}
            checks = tuple(AcceptanceCheck(kind, command_id) for kind, command_id in issued.items())
            attempt = Attempt(number, AttemptState.RUNNING, checks)
            return _Written(_saved(step, attempt), events.acceptance_started(number, issued))
        case Continues(attempt=attempt):
            return _Written(_saved(step, attempt))
        case Passes(attempt=attempt, reason=reason):
            return _Written(_saved(step, attempt, reason), events.node_adopted(reason, attempt.number))
        case Fails(attempt=attempt, failed=failed):
            told = events.acceptance_failed(attempt.number, failed.reason, failed.command_id)
            return _Written(_saved(step, attempt, failed.reason), told)
        case Unchanged():
            raise TypeError("nothing was decided")
        case _:
            assert_never(outcome)


def _saved(step: _Step, attempt: Attempt, reason: str | None = None) -> SavedAttempt:
    return SavedAttempt(step.tenant_id, step.node_id, attempt, reason)


async def _issue(tx: Transaction, tenant_id: TenantId, request: CommandRequest) -> CommandId:
    if request.not_after is None:
        raise TypeError("a check is to be started within a time")
    issued = Issued(id=CommandId(new_id("cmd")), by=ISSUER, request_id=new_id("req"), not_after=request.not_after)
    command = await issue(tx, tenant_id, request, issued)
    if command is None:
        raise RuntimeError(f"the key {request.key!r} of an attempt that is new is taken")
    return command.id


async def _save_conditions(tx: Transaction, steps: Sequence[_Step], now: datetime) -> None:
    known = await standings(tx, [step.row for step in steps], (ACCEPTANCE_FAILED,))
    changes = []
    for step in steps:
        if isinstance(step.outcome, Starts | Passes | Fails):
            standing = known[step.node_id]
            changed = observe(standing, [observed(step.outcome)], now)
            if changed is not None:
                changes.append((standing, changed))
    await save_changes(tx, changes)
