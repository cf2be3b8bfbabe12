"""Remediation: which nodes need it, what decides it of them, and its runs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from db.connections import Row
from db.database import Transaction
from domain.command_kinds import GPU_RESET, KINDS, NODE_REBOOT
from domain.commands import OPEN_MAX, CommandState
from domain.device_health import HealthSource
from domain.disruption import BREAKER_WINDOW, PoolDisruption
from domain.ids import CommandId, DeviceId, NodeId, PoolId, RunId, TenantId
from domain.node import LEASE_SECONDS, ProvisionState, Trust
from domain.pool_policy import read_policy
from domain.remediation import START_WITHIN, Candidate, Progress
from domain.remediation_run import Need, RemediationState, Run
from domain.xid_rules import XidPolicy, XidRemedy

PENDING_RESET: Final = "RowRemapPending"
"""The condition from inventories that a GPU reset ends."""
NODES_MAX: Final = 1000
"""Nodes of one pool that are looked at; those whose run is open come first, then those that need it longest."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_RUNS_EACH: Final = 200
"""Of a node: with eight GPUs a day of runs that did not help, and more than that is left to an operator."""

# What needs remediation, or is being remedied: as little as that is.
_NOTED = """
select node_id, since from node_faults where condition is not null and ended_at is null
union all select node_id, since from device_health where source = $1 and reason = $2
union all select node_id, '-infinity' from remediation_runs where finished_at is null
"""
_SCOPES = f"""
select distinct n.tenant_id, n.pool_id from ({_NOTED}) noted join nodes n on n.id = noted.node_id
union select tenant_id, id from pools where remediation_paused_since is not null
order by 1, 2
"""  # noqa: S608 - text of ours
_TURN = "select pg_try_advisory_xact_lock(hashtextextended('remediation/' || $1::text || '/' || $2::text, 20261130))"
_NODES_OF_SCOPE = f"""
select n.id from ({_NOTED}) noted join nodes n on n.id = noted.node_id
where n.tenant_id = $3 and (n.pool_id = $4 or (n.pool_id is null and $4::text is null))
group by n.id order by min(noted.since), n.id limit $5
"""  # noqa: S608
# In order of their ids; what somebody else holds is looked at the next time, and what has left the scope not here.
_LOCK = """
select n.id from nodes n
where n.id = any ($1) and n.tenant_id = $2 and (n.pool_id = $3 or (n.pool_id is null and $3::text is null))
order by n.id for no key update of n skip locked
"""
# One that turned unhealthy before, and again meanwhile, is not one that turned.
_POOL = """
select (
        select count(*) from nodes
        where tenant_id = $1 and pool_id = $2 and provision_state <> 'retired'
    ) as size, (
        select count(*) from remediation_runs r join nodes n on n.id = r.node_id
        where r.finished_at is null and n.tenant_id = $1
            and (n.pool_id = $2 or (n.pool_id is null and $2::text is null))
    ) as out, (
        select count(*) from (
            select from (
                select node_id, since from node_faults
                where condition is not null and policy <> $4 and (ended_at is null or since > $3)
                union all select node_id, since from device_health where source = any ($5)
                union all select node_id, since from node_conditions where type = 'NodeUnreachable' and status = 'true'
            ) ill join nodes n on n.id = ill.node_id
            where n.tenant_id = $1 and n.pool_id = $2 and n.provision_state <> 'retired'
            group by n.id having min(ill.since) > $3
        ) turned
    ) as turned, p.policy, p.remediation_paused_since
from (values (1)) one left join pools p on p.tenant_id = $1 and p.id = $2
"""
_PAUSE = "update pools set remediation_paused_since = $2 where id = $1"
# Held is what is claimed now, or within the time in which a command may be started.
_HELD = """
select from {0} h where h.node_id = n.id and not isempty(h.during)
    and coalesce(upper(h.during), 'infinity') > clock_timestamp()
    and coalesce(lower(h.during), '-infinity') <= clock_timestamp() + $3
"""
_FACTS = f"""
select n.id, n.tenant_id, n.boot_id, n.trust, n.provision_state, n.maintenance, n.features,
    coalesce(l.last_seen_at > now() - make_interval(secs => $2), false) as is_connected,
    exists ({_HELD.format("allocations")}) or exists ({_HELD.format("bookings")}) as is_held,
    (
        select count(*) >= $5 or count(*) filter (where c.kind = any ($4)) > 0
        from commands c where c.node_id = n.id and c.finished_at is null
    ) as is_commanded
from nodes n left join node_liveness l on l.node_id = n.id
where n.id = any ($1) order by array_position($1, n.id)
"""  # noqa: S608
# What cannot be found cannot be reset.
_NEEDS = """
select f.node_id, f.condition, f.device_id, nullif(f.boot_id, '') as boot_id, f.since,
    case when f.remedy <> $4 or d.id is not null then f.remedy end as remedy
from node_faults f
left join devices d on d.id = f.device_id and d.node_id = f.node_id and d.device_class = 'gpu' and not d.missing
where f.node_id = any ($1) and f.condition is not null and f.ended_at is null
union all
select h.node_id, h.reason, h.device_id, null, h.since, $4
from device_health h join devices d on d.id = h.device_id and d.device_class = 'gpu' and not d.missing
where h.node_id = any ($1) and h.source = $2 and h.reason = $3
order by since, condition, device_id
"""
# An inventory is of after a command when it was applied after it, or is the very one that its agent then collected.
_RUNS = """
select r.*, c.state as command_state, c.reason as command_reason, c.started_at as command_started_at,
    c.finished_at as command_finished_at, c.result ->> 'upTo' as up_to,
    coalesce(i.missing = '{}' and i.applied = i.reported and not i.replan and (
        i.applied_at > c.finished_at or i.applied_digest = c.result ->> 'digest'
    ), false) as is_seen,
    exists (
        select from devices d
        where d.id = r.device_id and d.node_id = r.node_id and not d.missing and not d.attributes @> '{"lost": true}'
    ) and not exists (
        select from device_health h where h.device_id = r.device_id and h.source = $3
    ) as is_healthy
from unnest($1::text[]) n (id)
cross join lateral (select * from remediation_runs where node_id = n.id order by id desc limit $2) r
left join commands c on c.id = r.command_id left join node_inventory i on i.node_id = r.node_id
order by r.node_id, r.id desc
"""
# What decisions look at stays.
_PRUNE = """
delete from remediation_runs r
where r.finished_at < $1
    and (select count(*) from remediation_runs n where n.node_id = r.node_id and n.id > r.id) >= $2
"""
_SAVE = """
insert into remediation_runs (
    id, tenant_id, node_id, remedy, device_id, faults, boot_id, attempt, state, command_id, reason, started_at,
    finished_at, escalated_at
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict (id) do update set state = excluded.state, reason = excluded.reason, finished_at = excluded.finished_at,
    escalated_at = excluded.escalated_at
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What shares a budget: the nodes of a pool, or a tenant's nodes without one."""

    tenant_id: TenantId
    pool_id: PoolId | None


async def scopes(tx: Transaction) -> list[Scope]:
    """Return where something needs remediation, is being remedied, or is paused."""
    rows = await tx.fetch(_SCOPES, HealthSource.INVENTORY, PENDING_RESET)
    return [Scope(TenantId(row.tenant_id), PoolId(row.pool_id) if row.pool_id else None) for row in rows]


async def take_turn(tx: Transaction, scope: Scope) -> bool:
    """Keep others from deciding of this scope until the transaction ends; False when somebody does already."""
    return bool(await tx.value(_TURN, scope.tenant_id, scope.pool_id or ""))


async def nodes_of(tx: Transaction, scope: Scope) -> list[NodeId]:
    """Return the nodes of a scope that may need a step, in the order in which they get their turn."""
    noted = (HealthSource.INVENTORY, PENDING_RESET)
    rows = await tx.fetch(_NODES_OF_SCOPE, *noted, scope.tenant_id, scope.pool_id, NODES_MAX)
    return [NodeId(row.id) for row in rows]


async def lock_nodes(tx: Transaction, scope: Scope, node_ids: Sequence[NodeId]) -> list[NodeId]:
    """Hold nodes of a scope until the transaction ends, in the order given, leaving out what somebody else holds."""
    held = {row.id for row in await tx.fetch(_LOCK, list(node_ids), scope.tenant_id, scope.pool_id)}
    return [node_id for node_id in node_ids if node_id in held]


async def disruption_of(tx: Transaction, scope: Scope, now: datetime) -> PoolDisruption:
    """Return how much of a scope is out, and how much turned unhealthy lately."""
    sources = [HealthSource.XID, HealthSource.INVENTORY]
    window = now - BREAKER_WINDOW
    row = await tx.first(_POOL, scope.tenant_id, scope.pool_id, window, XidPolicy.NODE_ALERT, sources)
    if row is None:
        raise RuntimeError("a select without a table has a row")
    return PoolDisruption(
        is_pool=scope.pool_id is not None,
        size=row.size,
        share=read_policy(row.policy or {}).disruption_budget,
        out=row.out,
        turned=row.turned,
        paused_since=row.remediation_paused_since,
    )


async def pause_pool(tx: Transaction, pool_id: PoolId, since: datetime | None) -> None:
    """Note since when a pool is left alone, None for no longer."""
    await tx.execute(_PAUSE, pool_id, since)


async def candidates(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Candidate]:
    """Return all that decides of these nodes, in their order; of nodes that are held it stays so."""
    ids = list(node_ids)
    rows = await tx.fetch(_FACTS, ids, LEASE_SECONDS, START_WITHIN, [NODE_REBOOT, GPU_RESET], OPEN_MAX)
    needs = await tx.fetch(_NEEDS, ids, HealthSource.INVENTORY, PENDING_RESET, XidRemedy.GPU_RESET)
    runs = await tx.fetch(_RUNS, ids, _RUNS_EACH, HealthSource.INVENTORY)
    of_needs, of_runs = _by_node(needs), _by_node(runs)
    return [_candidate(row, of_needs.get(row.id, []), of_runs.get(row.id, [])) for row in rows]


async def save_run(tx: Transaction, run: Run) -> None:
    """Write a run; raises asyncpg's UniqueViolationError for a second open one of a node."""
    faults = [{"condition": condition, "deviceId": device_id} for condition, device_id in run.faults]
    await tx.execute(
        _SAVE,
        run.id,
        run.tenant_id,
        run.node_id,
        run.remedy,
        run.device_id,
        faults,
        run.boot_id,
        run.attempt,
        run.state,
        run.command_id,
        run.reason,
        run.started_at,
        run.finished_at,
        run.escalated_at,
    )


def _by_node(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.node_id, []).append(row)
    return found


async def prune_runs(tx: Transaction, before: datetime) -> None:
    """Forget runs that ended before a time, but those of each node that decisions look at."""
    await tx.execute(_PRUNE, before, _RUNS_EACH)


def _candidate(row: Row, needs: Sequence[Row], runs: Sequence[Row]) -> Candidate:
    followed = next((each for each in runs if each.finished_at is None), None)
    return Candidate(
        node_id=NodeId(row.id),
        tenant_id=TenantId(row.tenant_id),
        boot_id=row.boot_id,
        trust=Trust(row.trust),
        provision_state=ProvisionState(row.provision_state),
        is_connected=row.is_connected,
        in_maintenance=row.maintenance,
        is_held=row.is_held,
        is_commanded=row.is_commanded,
        does=frozenset(row.features) if KINDS.keys() & set(row.features) else None,
        needs=tuple(_need(each) for each in needs),
        runs=tuple(_run(each) for each in runs),
        progress=None if followed is None else _progress(followed),
    )


def _need(row: Row) -> Need:
    return Need(
        condition=row.condition,
        device_id=None if row.device_id is None else DeviceId(row.device_id),
        remedy=None if row.remedy is None else XidRemedy(row.remedy),
        boot_id=row.boot_id,
        since=row.since,
    )


def _run(row: Row) -> Run:
    return Run(
        id=RunId(row.id),
        tenant_id=TenantId(row.tenant_id),
        node_id=NodeId(row.node_id),
        remedy=XidRemedy(row.remedy),
        device_id=None if row.device_id is None else DeviceId(row.device_id),
        faults=tuple((fault["condition"], _device(fault)) for fault in row.faults),
        boot_id=row.boot_id,
        attempt=row.attempt,
        state=RemediationState(row.state),
        command_id=None if row.command_id is None else CommandId(row.command_id),
        reason=row.reason,
        started_at=row.started_at,
        finished_at=row.finished_at,
        escalated_at=row.escalated_at,
    )


def _device(fault: dict[str, Any]) -> DeviceId | None:
    return None if fault["deviceId"] is None else DeviceId(fault["deviceId"])


def _progress(row: Row) -> Progress | None:
    if row.command_state is None:
        return None
    return Progress(
        state=CommandState(row.command_state),
        reason=row.command_reason,
        started_at=row.command_started_at,
        finished_at=row.command_finished_at,
        is_seen=row.is_seen,
        is_healthy=row.is_healthy,
        up_to=_number(row.up_to),
    )


def _number(text: str | None) -> int | None:
    """Return a number of an agent's result, None for what is none."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None
