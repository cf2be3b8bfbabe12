"""Taking commands, running them one after another, and telling what became of them.

The subscription says at once that there is something; asking now and then is the guarantee. Which command may be run
is the server's word, whether one was run already the ledger's.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from uuid import uuid4

import structlog

from agent.client import Client
from agent.commands.handlers import Handler, failed, succeeded
from agent.commands.ledger import Entry, Ledger, Phase
from agent.failures import AgentFailure, Refused
from agent.loop import Timing
from agent.wire import Command, CommandRef, CommandResult, CommandStart, CommandState
from domain.command_kinds import KINDS, NODE_REBOOT, UNSUPPORTED
from domain.errors import Code, InvalidInput

POLL_SECONDS: Final = 30.0
JOIN_SECONDS: Final = 0.2
_MESSAGE_LENGTH_MAX: Final = 1000
_SETTLED: Final = frozenset({Code.CONFLICT, Code.NOT_FOUND, Code.INVALID_INPUT})

_log = structlog.get_logger(__name__)


class CommandWorker:
    """The commands of one node's agent. Cancel `run` to end it.

    `node_id` gives the node of the present session, `boot_id` the machine's present boot.
    """

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        client: Client,
        handlers: Mapping[str, Handler],
        ledger: Ledger,
        *,
        node_id: Callable[[], str | None],
        boot_id: str | None,
        timing: Timing,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._client = client
        self._handlers = handlers
        self._ledger = ledger
        self._node_id = node_id
        self._boot_id = boot_id
        self._timing = timing
        self._poll_seconds = poll_seconds
        self._wake = asyncio.Event()
        self._told_of: str | None = None

    async def run(self) -> None:
        """Work for ever."""
        for entry in self._ledger.in_phase(Phase.RUNNING):
            with suppress(OSError):  # it stays as it was, and so does not run again
                self._ledger.note(_ended(entry, _after_restart(entry, self._boot_id)))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._work())
            tasks.create_task(self._listen())

    async def _work(self) -> None:
        backoff = self._timing.backoff()
        while True:
            self._wake.clear()
            pause = self._timing.jittered(self._poll_seconds)
            try:
                await self._once(await self._joined())
                self._told_of = None
                backoff.succeeded()
            except AgentFailure as failure:
                pause = backoff.seconds(failure)
                self._say("commands wait", failure)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _listen(self) -> None:
        backoff = self._timing.backoff()
        while True:
            failed_by: AgentFailure | None = None
            node_id = await self._joined()
            try:
                async for _ in self._client.follow_commands(node_id):
                    backoff.succeeded()
                    self._wake.set()
            except AgentFailure as failure:
                failed_by = failure
                self._say("commands are asked for only now and then", failure)
            await asyncio.sleep(backoff.seconds(failed_by))

    async def _joined(self) -> str:
        while (node_id := self._node_id()) is None:  # noqa: ASYNC110 - the session has no event of its own
            await asyncio.sleep(JOIN_SECONDS)
        return node_id

    async def _once(self, node_id: str) -> None:
        await self._tell_all(node_id)
        for command in await self._client.take_commands(node_id):
            entry = self._ledger.find(command.id)
            # What runs and is not in the ledger is another agent's, or was this one's before it lost its ledger.
            is_new = entry is None and command.state is not CommandState.RUNNING
            if is_new or (entry is not None and entry.phase is Phase.STARTING):
                await self._run(node_id, command, entry)
                await self._tell_all(node_id)

    async def _run(self, node_id: str, command: Command, entry: Entry | None) -> None:
        """Run a command that this agent has not run, and keep its result."""
        ref = CommandRef(node_id=node_id, command_id=command.id)
        handler = self._handlers.get(command.kind)
        if handler is None:
            await self._tell(ref, failed(UNSUPPORTED, f"this agent does not do {command.kind}"))
            return
        run_id = entry.run_id if entry else str(uuid4())
        starting = Entry(command.id, command.sequence, command.kind, Phase.STARTING, run_id, self._boot_id)
        try:
            self._ledger.note(starting)
            if not await self._start(CommandStart(node_id=node_id, command_id=command.id, run_id=run_id)):
                self._ledger.forget(command.id)
                return
            self._ledger.note(_in_phase(starting, Phase.RUNNING))
        except OSError as error:
            await self._tell(ref, failed("no-state", f"the agent cannot keep what it does: {error.strerror}"))
            return
        _log.info("command started", command_id=command.id, kind=command.kind, sequence=command.sequence)
        result = await _result_of(handler, command)
        _log.info("command ended", command_id=command.id, outcome=result.outcome.value, reason=result.reason)
        try:
            self._ledger.note(_ended(starting, result))
        except OSError:
            await self._tell(ref, result)

    async def _start(self, start: CommandStart) -> bool:
        """Tell the server; False when the command must not be run any more."""
        try:
            await self._client.start_command(start)
        except Refused as refusal:
            if refusal.code not in _SETTLED:
                raise
            _log.info("command not started", command_id=start.command_id, reason=str(refusal))
            return False
        return True

    async def _tell_all(self, node_id: str) -> None:
        for entry in self._ledger.in_phase(Phase.DONE):
            if entry.result is not None:
                await self._tell(CommandRef(node_id=node_id, command_id=entry.command_id), entry.result)
            with suppress(OSError):  # it is told again, which changes nothing
                self._ledger.note(_in_phase(entry, Phase.TOLD))

    async def _tell(self, ref: CommandRef, result: CommandResult) -> None:
        """Tell a result; what the server does not take it will not take another time either."""
        try:
            await self._client.complete_command(ref, result)
        except Refused as refusal:
            if refusal.code not in _SETTLED:
                raise
            _log.warning("result not taken", command_id=ref.command_id, reason=str(refusal))

    def _say(self, what: str, failure: AgentFailure) -> None:
        if str(failure) != self._told_of:
            self._told_of = str(failure)
            _log.warning(what, reason=str(failure))


async def _result_of(handler: Handler, command: Command) -> CommandResult:
    seconds = KINDS[command.kind].run_seconds_max
    try:
        async with asyncio.timeout(seconds):
            return await handler(command)
    except TimeoutError:
        return failed("deadline", f"it did not end within {seconds} s")
    except InvalidInput as refusal:
        return failed("invalid", refusal.message)
    except (AgentFailure, OSError) as error:
        return failed("failed", str(error)[:_MESSAGE_LENGTH_MAX])


def _after_restart(entry: Entry, boot_id: str | None) -> CommandResult:
    """Say what became of a run that the agent did not live to see the end of."""
    if entry.kind == NODE_REBOOT and None not in {entry.boot_id, boot_id} and entry.boot_id != boot_id:
        return succeeded(bootId=boot_id)
    return failed("interrupted", "the agent was ended while it ran")


def _ended(entry: Entry, result: CommandResult) -> Entry:
    return Entry(entry.command_id, entry.sequence, entry.kind, Phase.DONE, entry.run_id, entry.boot_id, result)


def _in_phase(entry: Entry, phase: Phase) -> Entry:
    return Entry(entry.command_id, entry.sequence, entry.kind, phase, entry.run_id, entry.boot_id)
