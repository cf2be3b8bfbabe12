"""Commands of nodes: made under the node's lock, which counts them; each step writes the whole of what may change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from db.connections import Row
from db.database import Transaction
from db.events import NewEvent, write_events
from domain.commands import OPEN_MAX, Command, CommandRequest, CommandState
from domain.events import command_changed
from domain.ids import CommandId, NodeId, TenantId

PRUNED_MAX: Final = 10_000
_NODE = """
select n.provision_state,
    (select count(*) from commands c where c.node_id = n.id and c.finished_at is null) as opened
from nodes n where n.tenant_id = $1 and n.id = $2 for no key update of n
"""
_OF_KEY = "select * from commands where tenant_id = $1 and idempotency_key = $2"
# The node's lock keeps two commands from getting one number.
_ADD = """
insert into commands (
    id, tenant_id, node_id, sequence, idempotency_key, kind, payload, request, not_before, not_after, expires_at,
    issued_by, request_id
)
select $1, $2, $3, coalesce((select max(sequence) from commands where node_id = $3), 0) + 1,
    $4, $5, $6, $7, $8, $9, $9, $10, $11
on conflict (tenant_id, idempotency_key) do nothing
returning *
"""
_LOCK = "select * from commands where tenant_id = $1 and id = $2 for update"
_LOCK_OPEN = """
select * from commands where tenant_id = $1 and node_id = $2 and finished_at is null
order by sequence limit $3 for update
"""
_LOCK_OVERDUE = """
select * from commands where finished_at is null and expires_at <= $1
order by expires_at limit $2 for update skip locked
"""
_SAVE = """
update commands c set state = s.state, expires_at = s.expires_at, started_at = s.started_at,
    run_id = s.run_id, finished_at = s.finished_at, reason = s.reason, message = s.message, result = s.result
from jsonb_to_recordset($1) s (
    id text, state text, expires_at timestamptz, started_at timestamptz, run_id text, finished_at timestamptz,
    reason text, message text, result jsonb
)
where c.id = s.id
"""
# A node's newest says which number is next; and what is kept of acceptance and remediation is kept with its commands.
_PRUNE = """
delete from commands where id in (
    select c.id from commands c
    where c.finished_at < $1
        and exists (select from commands n where n.node_id = c.node_id and n.sequence > c.sequence)
        and not exists (select from remediation_runs r where r.command_id = c.id)
        and not exists (
            select from acceptance_attempts a
            where a.node_id = c.node_id and a.checks @> jsonb_build_array(jsonb_build_object('commandId', c.id))
        )
    order by c.finished_at limit $2 for update of c skip locked
)
"""
_IS_NODE = "select exists(select from nodes where tenant_id = $1 and id = $2)"
_HAS_GPU = (
    "select exists(select from devices where tenant_id = $1 and node_id = $2 and id = $3 and device_class = 'gpu')"
)


@dataclass(frozen=True, slots=True)
class Target:
    """The node of a new command, whose lock is held: its state, and how many of its commands are not finished."""

    provision_state: str
    opened: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What a new command is given: who asked for it, in which request, and how long it may be started."""

    id: CommandId
    by: str
    request_id: str
    not_after: datetime


async def lock_target(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> Target | None:
    """Hold a node until the transaction ends; None when the tenant has no such node."""
    row = await tx.first(_NODE, tenant_id, node_id)
    return None if row is None else Target(row.provision_state, row.opened)


async def is_node(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> bool:
    """Say whether the tenant has this node."""
    return bool(await tx.value(_IS_NODE, tenant_id, node_id))


async def command_of_key(tx: Transaction, tenant_id: TenantId, key: str) -> Row | None:
    """Return (id, request) and the rest of the tenant's command with this key."""
    return await tx.first(_OF_KEY, tenant_id, key)


async def issue(tx: Transaction, tenant_id: TenantId, request: CommandRequest, issued: Issued) -> Command | None:
    """Add a command, pending, with the node's next number, and tell it; None when the key is taken.

    The node is held by whoever issues, which counts its commands.
    """
    row = await tx.first(
        _ADD,
        issued.id,
        tenant_id,
        request.node_id,
        request.key,
        request.kind,
        dict(request.payload),
        request.document(),
        request.not_before,
        issued.not_after,
        issued.by,
        issued.request_id,
    )
    if row is None:
        return None
    command = command_of(row)
    await tell(tx, [command], by=issued.by)
    return command


async def lock_command(tx: Transaction, tenant_id: TenantId, command_id: str) -> Command | None:
    """Return a command and hold it until the transaction ends; None when the tenant has none of that id."""
    row = await tx.first(_LOCK, tenant_id, command_id)
    return None if row is None else command_of(row)


async def lock_open_commands(tx: Transaction, tenant_id: TenantId, node_id: str) -> list[Command]:
    """Return what is not finished of a node, by number, and hold it until the transaction ends."""
    return [command_of(row) for row in await tx.fetch(_LOCK_OPEN, tenant_id, node_id, OPEN_MAX)]


async def lock_overdue_commands(tx: Transaction, now: datetime, limit: int) -> list[Command]:
    """Return up to `limit` commands of any tenant whose time is over, and hold them until the transaction ends."""
    return [command_of(row) for row in await tx.fetch(_LOCK_OVERDUE, now, limit)]


async def save_steps(tx: Transaction, steps: Iterable[tuple[Command, Command]], *, by: str | None) -> int:
    """Write the commands that a step changed, with an event for each; takes (before, after), returns how many did.

    `by` is who took the step, None for time alone.
    """
    changed = [after for before, after in steps if after != before]
    if changed:
        await tx.execute(_SAVE, [_columns(command) for command in changed])
        await tell(tx, changed, by=by)
    return len(changed)


async def tell(tx: Transaction, commands: Sequence[Command], *, by: str | None) -> None:
    """Write the events that tell where commands are."""
    told = [(command, command_changed(command, by=by)) for command in commands]
    await write_events(tx, [NewEvent(each.tenant_id, each.node_id, event.type, event.payload) for each, event in told])


async def prune_commands(tx: Transaction, before: datetime) -> None:
    """Forget what was finished before a time, which ends the memory of its keys, too."""
    await tx.execute(_PRUNE, before, PRUNED_MAX)


async def has_gpu(tx: Transaction, tenant_id: TenantId, node_id: NodeId, device_id: str) -> bool:
    """Say whether a node has this GPU."""
    return bool(await tx.value(_HAS_GPU, tenant_id, node_id, device_id))


def command_of(row: Row) -> Command:
    """Return a row as the rules take it."""
    return Command(
        id=CommandId(row.id),
        tenant_id=TenantId(row.tenant_id),
        node_id=NodeId(row.node_id),
        sequence=row.sequence,
        kind=row.kind,
        state=CommandState(row.state),
        not_before=row.not_before,
        expires_at=row.expires_at,
        started_at=row.started_at,
        run_id=row.run_id,
        finished_at=row.finished_at,
        reason=row.reason,
        message=row.message,
        result=row.result,
    )


def _columns(command: Command) -> Mapping[str, Any]:
    return {
        "id": command.id,
        "state": command.state,
        "expires_at": command.expires_at,
        "started_at": command.started_at,
        "run_id": command.run_id,
        "finished_at": command.finished_at,
        "reason": command.reason,
        "message": command.message,
        "result": command.result,
    }
