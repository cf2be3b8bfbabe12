"""Commands of nodes: operators issue and cancel them, agents take, start and complete them (rule 10).

Every step may be repeated by who did not hear its answer. An agent names the node with the command, and another
node's is not found.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from db import commands as store
from db.commands import Issued, Target
from db.connections import Row
from db.database import Transaction
from db.declared.commands import BY_SEQUENCE, COMMANDS
from db.identifiers import new_id
from db.views import loading
from db.views.selection import Asked
from domain.access import Permission
from domain.allocation_request import differences
from domain.command_kinds import INVENTORY_REFRESH, GpuReset, Payload, read_payload
from domain.commands import (
    OPEN,
    OPEN_MAX,
    OWN_KEYS,
    Command,
    CommandRequest,
    CommandState,
    Result,
    acknowledge,
    admit,
    cancel,
    complete,
    is_deliverable,
    start,
)
from domain.errors import Conflict, InvalidInput, NotFound
from domain.events import COMMAND_CHANGED
from domain.ids import CommandId, NodeId, TenantId, has_prefix
from domain.json_document import storable_json
from domain.node import ProvisionState
from domain.texts import given_text, required_text, storable_time
from resolvers import reading
from resolvers.context import Context
from resolvers.feed import Topic
from resolvers.reads import One

RESULT_BYTES_MAX: Final = 256 * 1024
MESSAGE_LENGTH_MAX: Final = 4096
_OPEN_STATES: Final = tuple(sorted(OPEN))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A command as an operator asks for it."""

    node_id: str
    kind: str
    payload: Mapping[str, Any]
    key: str
    not_before: datetime | None = None
    not_after: datetime | None = None


async def issue_command(context: Context, given: Given) -> One:
    """Tell a node to do something once; the same again, by its key, is answered with the command that is there.

    Raises InvalidInput, NotFound, or Conflict when the key stands for another command or the node takes none.
    """
    tenant_id = context.require(Permission.OPERATE)
    required_text("key", given.key)
    if given.key.startswith(OWN_KEYS):
        raise InvalidInput(f"key: {' and '.join(OWN_KEYS)} are the beginnings of the server's own")
    payload = read_payload(given.kind, given.payload)
    for place, time in (("notBefore", given.not_before), ("notAfter", given.not_after)):
        if time is not None:
            storable_time(place, time)
    request = CommandRequest(
        node_id=NodeId(given.node_id),
        kind=given.kind,
        payload=msgspec.to_builtins(payload),
        key=given.key,
        not_before=given.not_before,
        not_after=given.not_after,
    )
    async with context.transaction() as tx:
        target = await _target(tx, tenant_id, given.node_id)
        if (known := await store.command_of_key(tx, tenant_id, request.key)) is not None:
            return reading.command(context, _again(known, request))
        await _refuse_foreign_gpu(tx, tenant_id, request, payload)
        command_id = await _add(context, tx, request, target)
    return reading.command(context, command_id)


async def refresh_inventory(context: Context, node_id: str) -> One:
    """Tell a node to collect its inventory anew; one that was told so and has not started is not told twice."""
    tenant_id = context.require(Permission.OPERATE)
    async with context.transaction() as tx:
        target = await _target(tx, tenant_id, node_id)
        now = context.services.now()
        for each in await store.lock_open_commands(tx, tenant_id, node_id):
            is_waiting = each.state is not CommandState.RUNNING and is_deliverable(each, now)
            if each.kind == INVENTORY_REFRESH and is_waiting:
                return reading.command(context, each.id)
        request = CommandRequest(
            node_id=NodeId(node_id), kind=INVENTORY_REFRESH, payload={}, key=f"refresh:{context.request_id}:{node_id}"
        )
        command_id = await _add(context, tx, request, target)
    return reading.command(context, command_id)


async def cancel_command(context: Context, command_id: str, reason: str | None) -> One:
    """Call a command off; raises NotFound, or Conflict when it runs already or ended otherwise."""
    tenant_id = context.require(Permission.OPERATE)
    given_text("reason", reason)
    now = context.services.now()
    return await _step(context, tenant_id, command_id, lambda command: cancel(command, reason, now))


async def take_commands(context: Context, node_id: str) -> list[Row]:
    """Return what a node is to do now, by number, and note that its agent has it; raises NotFound."""
    tenant_id = context.require(Permission.REPORT)
    now = context.services.now()
    async with context.transaction() as tx:
        await _refuse_unknown_node(tx, tenant_id, node_id)
        due = [each for each in await store.lock_open_commands(tx, tenant_id, node_id) if is_deliverable(each, now)]
        await store.save_steps(tx, [(each, acknowledge(each)) for each in due], by=_by(context))
    asked = Asked((COMMANDS.where("id", [each.id for each in due]),), BY_SEQUENCE)
    return await loading.load_rows(context.reader, tenant_id, COMMANDS, asked)


async def start_command(context: Context, node_id: str, command_id: str, run_id: str) -> One:
    """Note that the node's agent starts a command now; raises NotFound, or Conflict when it must not."""
    tenant_id = context.require(Permission.REPORT)
    required_text("runId", run_id)
    now = context.services.now()
    return await _step(context, tenant_id, command_id, lambda command: start(command, run_id, now), of_node=node_id)


async def complete_command(context: Context, node_id: str, command_id: str, given: Result) -> One:
    """Note what became of a command; raises NotFound, InvalidInput, or Conflict when it ended otherwise."""
    tenant_id = context.require(Permission.REPORT)
    given_text("reason", given.reason)
    if given.message is not None and (len(given.message) > MESSAGE_LENGTH_MAX or "\0" in given.message):
        raise InvalidInput(f"message: at most {MESSAGE_LENGTH_MAX} characters without U+0000 are taken")
    storable_json("result", given.document, RESULT_BYTES_MAX)
    now = context.services.now()
    return await _step(context, tenant_id, command_id, lambda command: complete(command, given, now), of_node=node_id)


@dataclass(frozen=True, slots=True)
class Delivered:
    """A command on its way to a subscriber: its row, and the context that its fields load with."""

    row: Row
    context: Context

    @property
    def typename(self) -> str:
        """The GraphQL type of the row."""
        return str(self.row.typename)


async def follow_commands(context: Context, node_id: str) -> AsyncIterator[Delivered]:
    """Yield what a node is to do now, by number, then each further command as it falls due, each once.

    The table says what is due; the feed only says when to look. So a subscription that is opened anew begins with
    all that is not finished, whatever was lost. Raises NotFound.
    """
    tenant_id = context.require(Permission.REPORT)
    database = context.services.database
    async with database.session() as tx:
        await _refuse_unknown_node(tx, tenant_id, node_id)
    told: set[str] = set()
    asked = Asked((COMMANDS.where("node_id", node_id), COMMANDS.where("state", _OPEN_STATES)), BY_SEQUENCE, OPEN_MAX)
    with context.services.feed.watch(Topic(COMMAND_CHANGED, node_id)) as noticed:
        while True:
            noticed.clear()
            rows = await loading.load_rows(database.reader(snapshot=False), tenant_id, COMMANDS, asked)
            now = context.services.now()
            told &= {row.id for row in rows}
            for row in rows:
                if row.id not in told and is_deliverable(store.command_of(row), now):
                    told.add(row.id)
                    yield Delivered(row, context.operation(snapshot=True))
            await _until_due(noticed, [row.not_before for row in rows if row.id not in told], context.services.now)


async def _until_due(noticed: asyncio.Event, begins: list[datetime | None], now: Callable[[], datetime]) -> None:
    """Wait until something happened to the node's commands, or the first of these times has come."""
    times = [each for each in begins if each is not None and each > now()]
    wait = (min(times) - now()).total_seconds() if times else None
    try:
        async with asyncio.timeout(wait):
            await noticed.wait()
    except TimeoutError:
        return


async def _step(
    context: Context,
    tenant_id: TenantId,
    command_id: str,
    decide: Callable[[Command], Command],
    of_node: str | None = None,
) -> One:
    """Take a command one step on; of a node that is named, no other's."""
    async with context.transaction() as tx:
        known = has_prefix(command_id, "cmd")
        command = await store.lock_command(tx, tenant_id, command_id) if known else None
        if command is None or of_node not in {None, command.node_id}:
            raise NotFound(f"no command {command_id[:64]!r}")
        await store.save_steps(tx, [(command, decide(command))], by=_by(context))
    # It may have ended an acceptance check; whether it did, the reconciler sees.
    context.services.database.acceptance_due.set()
    return reading.command(context, command_id)


async def _target(tx: Transaction, tenant_id: TenantId, node_id: str) -> Target:
    target = await store.lock_target(tx, tenant_id, NodeId(node_id)) if has_prefix(node_id, "node") else None
    if target is None:
        raise NotFound(f"no node {node_id[:64]!r}")
    return target


async def _refuse_unknown_node(tx: Transaction, tenant_id: TenantId, node_id: str) -> None:
    if not has_prefix(node_id, "node") or not await store.is_node(tx, tenant_id, NodeId(node_id)):
        raise NotFound(f"no node {node_id[:64]!r}")


async def _refuse_foreign_gpu(tx: Transaction, tenant_id: TenantId, request: CommandRequest, payload: Payload) -> None:
    if isinstance(payload, GpuReset) and not await store.has_gpu(tx, tenant_id, request.node_id, payload.device_id):
        raise InvalidInput(f"payload.deviceId: {request.node_id} has no GPU {payload.device_id!r}")


def _again(known: Row, request: CommandRequest) -> CommandId:
    if names := differences(known.request, request.document()):
        raise Conflict(f"key: {request.key!r} is that of {known.id}, with another {', '.join(names)}")
    return CommandId(known.id)


async def _add(context: Context, tx: Transaction, request: CommandRequest, target: Target) -> CommandId:
    tenant_id = context.require(Permission.OPERATE)
    state, now = ProvisionState(target.provision_state), context.services.now()
    issued = Issued(
        id=CommandId(new_id("cmd")),
        by=_by(context),
        request_id=context.request_id,
        not_after=admit(request, state, target.opened, now),
    )
    command = await store.issue(tx, tenant_id, request, issued)
    if command is None:
        # Another node's command got the key since it was looked for.
        raise Conflict(f"key: {request.key!r} is that of another node's command")
    return command.id


def _by(context: Context) -> str:
    return reading.viewer(context).name
