"""Made-up nodes do what they are told: they look at themselves, reboot, and reset their GPUs.

The server's log says which nodes have something to do, and those that are not well are asked for besides: a fleet at
rest asks nothing.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Final
from uuid import uuid4

import structlog

from agent.commands.handlers import failed, succeeded
from agent.failures import AgentFailure, Refused
from agent.retry import ALONE, Backoff
from agent.simulator.client import TAKEN_AT_ONCE_MAX, FleetClient
from agent.simulator.fleet import Fleet, Pace, in_groups
from agent.simulator.gpus import gpu_uuid, gpus_section
from agent.simulator.material import Material
from agent.simulator.node import Change, ChangeKind, NodeState
from agent.simulator.status import known_faults
from agent.simulator.troubles import Trouble
from agent.wire import Command, CommandRef, CommandResult, CommandStart, CommandState
from domain.command_kinds import DIAG_NVML, GPU_RESET, INVENTORY_REFRESH, NODE_REBOOT, DiagNvml, GpuReset, read_payload
from domain.errors import Code
from domain.nvml_diagnosis import diagnose, is_well

POLL_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 1.0
RESET_SECONDS: Final = 2.0
REBOOT_SECONDS: Final = 6.0
"""How long a made-up machine is gone; a real one takes minutes."""
_SETTLED: Final = frozenset({Code.CONFLICT, Code.NOT_FOUND, Code.INVALID_INPUT})

_log = structlog.get_logger(__name__)


class Commands:
    """The commands of a fleet. Cancel `run` to end it."""

    def __init__(self, client: FleetClient, fleet: Fleet, pace: Pace) -> None:
        self._client = client
        self._fleet = fleet
        self._pace = pace
        self._due: set[int] = set()
        self._busy: set[int] = set()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            while True:
                self._wake.clear()
                try:
                    for index, commands in await self._taken():
                        self._busy.add(index)
                        tasks.create_task(self._do_all(index, commands))
                except AgentFailure as failure:
                    _log.warning("commands wait", reason=str(failure))
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()

    async def _listen(self) -> None:
        after: str | None = None
        backoff = Backoff(self._pace.fraction, ALONE)
        while True:
            try:
                async for cursor, node_id in self._client.follow_fleet_commands(after):
                    after = cursor
                    backoff.succeeded()
                    if node_id is not None and (index := self._fleet.index_of(node_id)) is not None:
                        self._due.add(index)
                        self._wake.set()
            except AgentFailure as failure:
                # A cursor that is too old is refused; what is missed then the poll finds, where a node is not well.
                after = after if failure.transient else None
                _log.info("commands are asked for only now and then", reason=str(failure))
            await self._pace.sleep(backoff.seconds())

    async def _taken(self) -> list[tuple[int, Sequence[Command]]]:
        """Take what nodes that may have something to do are to do; a node that is down or busy is asked for later."""
        asked = sorted(index for index in self._due | self._fleet.troubled if self._is_free(index))
        found: list[tuple[int, Sequence[Command]]] = []
        for group in in_groups(asked, TAKEN_AT_ONCE_MAX):
            node_ids = [self._fleet.node(index).node_id for index in group]
            taken = await self._fleet.persist(partial(self._client.take_commands_of, node_ids))
            # Of what runs a simulator from before this one may have had the result: it is not begun again.
            begun = [[one for one in commands if one.state is not CommandState.RUNNING] for commands in taken]
            self._due.difference_update(group)
            found += [(index, commands) for index, commands in zip(group, begun, strict=True) if commands]
        return found

    def _is_free(self, index: int) -> bool:
        return index not in self._busy and not self._fleet.node(index).state.has(Trouble.SILENCE)

    async def _do_all(self, index: int, commands: Sequence[Command]) -> None:
        try:
            for command in commands:
                await self._do(index, command)
        except AgentFailure as failure:
            _log.warning("command given up", node=index, reason=str(failure))
        finally:
            self._busy.discard(index)
            # What was asked for meanwhile may be due since.
            self._due.add(index)
            self._wake.set()

    async def _do(self, index: int, command: Command) -> None:
        node_id, persist = self._fleet.node(index).node_id, self._fleet.persist
        start = CommandStart(node_id=node_id, command_id=command.id, run_id=str(uuid4()))
        try:
            await persist(lambda: self._client.start_command(start))
            result = await self._result(index, command)
            ref = CommandRef(node_id=node_id, command_id=command.id)
            await persist(lambda: self._client.complete_command(ref, result))
        except Refused as refusal:
            if refusal.code not in _SETTLED:
                raise
            _log.info("command not done", command_id=command.id, reason=str(refusal))

    async def _result(self, index: int, command: Command) -> CommandResult:
        payload = read_payload(command.kind, command.payload)
        match command.kind, payload:
            case (kind, _) if kind == INVENTORY_REFRESH:
                await self._pace.sleep(LOOK_SECONDS)
                await self._fleet.happen([Change(index, ChangeKind.AGENT_RESTARTED)])
                return succeeded(digest=self._fleet.node(index).digest)
            case (kind, DiagNvml(gpu_count=expected)) if kind == DIAG_NVML:
                await self._pace.sleep(LOOK_SECONDS)
                return diagnosed(self._fleet.material(index), self._fleet.node(index).state, expected)
            case (kind, _) if kind == NODE_REBOOT:
                await self._fleet.happen([Change(index, ChangeKind.TROUBLE, trouble=Trouble.SILENCE)])
                await self._pace.sleep(REBOOT_SECONDS)
                await self._fleet.happen([Change(index, ChangeKind.REBOOTED)])
                return succeeded(bootId=self._fleet.boot_id(self._fleet.node(index).state))
            case (kind, GpuReset(device_id=device_id)) if kind == GPU_RESET:
                return await self._reset(index, device_id)
            case _:
                return failed("unsupported", f"made-up nodes do not do {command.kind}")

    async def _reset(self, index: int, device_id: str) -> CommandResult:
        material, state = self._fleet.material(index), self._fleet.node(index).state
        slots = [slot for slot in range(len(state.server.gpu_places)) if gpu_uuid(material, state, slot) == device_id]
        if not slots:
            return failed("failed", f"there is no GPU {device_id}")
        await self._pace.sleep(RESET_SECONDS)
        await self._fleet.happen([Change(index, ChangeKind.GPU_RESET, slots[0])])
        node = self._fleet.node(index)
        return succeeded(digest=node.digest, healthy=is_well(gpus_section(material, node.state), device_id))


def diagnosed(material: Material, state: NodeState, expected: int | None) -> CommandResult:
    """Return what `diag.nvml` finds at a node in that state."""
    section = gpus_section(material, state)
    found = diagnose(section, expected, known_faults(material, state))
    return succeeded(
        passed=found.passed,
        gpuCount=found.gpu_count,
        driverVersion=section.driver_version,
        failures=[asdict(each) for each in found.failures],
    )
