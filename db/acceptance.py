"""Acceptance as it is kept: the attempts of nodes, what they are decided by, and what a decision writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from db.commands import command_of
from db.connections import Row
from db.database import Transaction
from domain.acceptance import AcceptanceCheck, Attempt, AttemptState, CheckState
from domain.commands import Command
from domain.ids import CommandId, NodeId, TenantId
from domain.node import LEASE_SECONDS, ProvisionState, Trust

_HEARD: Final = "l.last_seen_at > now() - make_interval(secs => $2)"
_NEWEST: Final = """
left join lateral (
    select a.attempt, a.state, a.checks from acceptance_attempts a
    where a.node_id = n.id order by a.attempt desc limit 1
) a on true
"""
# Whom nobody hears need not begin, and whose commands are all under way need not be followed.
_OF_NOTE = f"""
select n.id from nodes n left join node_liveness l on l.node_id = n.id {_NEWEST}
where n.provision_state = 'adopting' and n.id > $1 and case coalesce(a.state, 'waiting')
    when 'waiting' then n.trust <> $4 and {_HEARD}
    when 'running' then n.trust = $4 or exists (
        select from jsonb_to_recordset(a.checks) k ("commandId" text, state text)
        join commands c on c.id = k."commandId"
        where k.state = 'running' and c.finished_at is not null
    )
end
order by n.id limit $3
"""  # noqa: S608 - text of ours
_LOCK = "select id from nodes where id = any ($1) order by id for no key update skip locked"
# What a tenant reported while it had control is nobody's inventory.
_FACTS = f"""
select n.id as node_id, n.tenant_id, n.trust, n.no_schedule_reasons, n.provision_state, n.role, p.agent, p.policy,
    coalesce({_HEARD}, false) as heard, i.applied is not null as has_inventory, s.content as gpus,
    a.attempt, a.state, a.checks,
    (
        select jsonb_object_agg(f.device_id, f.sequence) from (
            select device_id, max(sequence)::text as sequence from node_faults
            where node_id = n.id and boot_id = coalesce(n.boot_id, '') and "end" = 'cleared' and device_id is not null
            group by device_id
        ) f
    ) as cleared,
    (select count(*) from commands c where c.node_id = n.id and c.finished_at is null) as opened
from nodes n
left join pools p on p.id = n.pool_id
left join node_liveness l on l.node_id = n.id
left join node_inventory i on i.node_id = n.id and i.applied_digest not like 'advisory:%'
left join inventory_sections s on s.node_id = n.id and s.name = 'gpus' and s.sha256 = i.applied ->> 'gpus'
{_NEWEST}
where n.id = any ($1)
"""  # noqa: S608 - text of ours
_COMMANDS = "select * from commands where id = any ($1)"
_SAVE = """
insert into acceptance_attempts (node_id, attempt, tenant_id, state, checks, reason, started_at, finished_at)
select node_id, attempt, tenant_id, state, checks, reason,
    case when state <> 'waiting' then $2::timestamptz end,
    case when state in ('passed', 'failed') then $2::timestamptz end
from jsonb_to_recordset($1)
    i (node_id text, attempt int, tenant_id text, state text, checks jsonb, reason text)
on conflict (node_id, attempt) do update set state = excluded.state, checks = excluded.checks, reason = excluded.reason,
    started_at = coalesce(acceptance_attempts.started_at, excluded.started_at), finished_at = excluded.finished_at
"""
# The number of GPUs that a node is held to has changed: it is planned anew.
_ADOPT = """
with passed as (
    select * from jsonb_to_recordset($1) i (node_id text, gpus int)
), was as (
    select n.id, n.accepted_gpus, coalesce(p.gpus, n.accepted_gpus) as gpus
    from nodes n join passed p on p.node_id = n.id
), adopted as (
    update nodes n set provision_state = $2, generation = greatest(n.generation, 1), accepted_gpus = w.gpus
    from was w where n.id = w.id
), replanned as (
    update node_inventory i set replan = true
    from was w
    where i.node_id = w.id and not i.replan and i.applied is not null and w.gpus is distinct from w.accepted_gpus
    returning i.node_id
)
select count(*) from replanned
"""
# The newest is what its node stands at, and counts the next.
_PRUNE = """
delete from acceptance_attempts a
where a.finished_at < $1
    and exists (select from acceptance_attempts n where n.node_id = a.node_id and n.attempt > a.attempt)
"""
_NODE = f"""
select n.provision_state, n.trust, a.attempt, a.state, a.checks from nodes n {_NEWEST}
where n.tenant_id = $1 and n.id = $2
"""  # noqa: S608 - text of ours
_LOCK_NODE = "select id from nodes where tenant_id = $1 and id = $2 for no key update"
_BEGIN = "update nodes set provision_state = $2 where id = $1 and provision_state <> $2"


@dataclass(frozen=True, slots=True)
class Adoptable:
    """A node that an operator would have checked anew, whose lock is held."""

    state: ProvisionState
    trust: Trust
    newest: Attempt | None


@dataclass(frozen=True, slots=True)
class SavedAttempt:
    """An attempt with its node, and why it ended."""

    tenant_id: TenantId
    node_id: NodeId
    attempt: Attempt
    reason: str | None = None


async def adoptions_of_note(tx: Transaction, after: str, limit: int) -> list[NodeId]:
    """Return the next nodes after an id, of whatever tenant, whose acceptance may begin or has come further."""
    rows = await tx.fetch(_OF_NOTE, after, LEASE_SECONDS, limit, Trust.TENANT_CONTROLLED.value)
    return [NodeId(row.id) for row in rows]


async def lock_adoptions(tx: Transaction, node_ids: Sequence[NodeId]) -> list[NodeId]:
    """Hold nodes until the transaction ends, leaving out what somebody else has."""
    return [NodeId(row.id) for row in await tx.fetch(_LOCK, list(node_ids))]


async def adoption_facts(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return what acceptance is decided by."""
    return await tx.fetch(_FACTS, list(node_ids), LEASE_SECONDS)


async def commands_of_attempts(tx: Transaction, attempts: Iterable[Attempt]) -> dict[CommandId, Command]:
    """Return the commands of attempts, by id."""
    ids = [check.command_id for attempt in attempts for check in attempt.checks]
    return {CommandId(row.id): command_of(row) for row in await tx.fetch(_COMMANDS, ids)} if ids else {}


async def save_attempts(tx: Transaction, saved: Sequence[SavedAttempt], now: datetime) -> None:
    """Write attempts that came further, in one statement."""
    if saved:
        await tx.execute(_SAVE, [_columns(each) for each in saved], now)


async def save_adopted(tx: Transaction, accepted: Mapping[NodeId, int | None]) -> int:
    """Adopt nodes, each with the number of GPUs that it was accepted with; returns how many are planned anew for it."""
    if not accepted:
        return 0
    rows = [{"node_id": node_id, "gpus": gpus} for node_id, gpus in accepted.items()]
    return int(await tx.value(_ADOPT, rows, ProvisionState.ADOPTED.value))


async def lock_adoptable(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> Adoptable | None:
    """Hold a node until the transaction ends; None when the tenant has no such node."""
    if await tx.value(_LOCK_NODE, tenant_id, node_id) is None:
        return None
    # In a statement after the lock's, which sees what was committed while the lock was waited for.
    row = await tx.first(_NODE, tenant_id, node_id)
    return None if row is None else Adoptable(ProvisionState(row.provision_state), Trust(row.trust), attempt_of(row))


async def begin_attempt(tx: Transaction, tenant_id: TenantId, node_id: NodeId, number: int, now: datetime) -> None:
    """Add an attempt that waits for its node, and take the node out of placement."""
    await tx.execute(_BEGIN, node_id, ProvisionState.ADOPTING.value)
    await save_attempts(tx, [SavedAttempt(tenant_id, node_id, Attempt(number, AttemptState.WAITING))], now)


async def prune_attempts(tx: Transaction, before: datetime) -> None:
    """Forget attempts that ended before a time, but each node's newest."""
    await tx.execute(_PRUNE, before)


def attempt_of(row: Row) -> Attempt | None:
    """Return a node's newest attempt as the rules take it."""
    if row.attempt is None:
        return None
    checks = tuple(
        AcceptanceCheck(each["kind"], CommandId(each["commandId"]), CheckState(each["state"]), each["reason"])
        for each in row.checks
    )
    return Attempt(row.attempt, AttemptState(row.state), checks)


def _columns(saved: SavedAttempt) -> Mapping[str, Any]:
    attempt = saved.attempt
    checks = [
        {"kind": each.kind, "commandId": each.command_id, "state": each.state.value, "reason": each.reason}
        for each in attempt.checks
    ]
    return {
        "node_id": saved.node_id,
        "tenant_id": saved.tenant_id,
        "attempt": attempt.number,
        "state": attempt.state.value,
        "checks": checks,
        "reason": saved.reason,
    }
