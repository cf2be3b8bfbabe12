"""The agent's commands: each runs once, whatever is lost and whoever restarts."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from agent.client import Client
from agent.commands.handlers import Handler, succeeded
from agent.commands.ledger import Entry, Ledger, Phase
from agent.commands.worker import CommandWorker
from agent.failures import Refused, Unreachable
from agent.loop import Timing
from agent.wire import Command, CommandOutcome, CommandRef, CommandResult, CommandStart, CommandState
from domain.errors import Code
from tests.agent.fake_server import until

FAST = Timing(fraction=lambda: 0.01)


@dataclass
class FakeClient:
    """The server's commands as the rules have them, with answers that may be lost."""

    commands: dict[str, Command] = field(default_factory=dict)
    results: list[tuple[str, CommandResult]] = field(default_factory=list)
    lost_starts: int = 0
    lost_results: int = 0
    takes: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def issue(self, kind: str = "diag.nvml", state: CommandState = CommandState.PENDING) -> str:
        number = len(self.commands) + 1
        self.commands[f"cmd_{number}"] = Command(f"cmd_{number}", number, kind, {}, state)
        self.told.set()
        return f"cmd_{number}"

    def result(self, command_id: str) -> CommandResult:
        (found,) = [result for each, result in self.results if each == command_id]
        return found

    async def take_commands(self, node_id: str) -> tuple[Command, ...]:
        assert node_id == "node_1"
        self.takes += 1
        open_ = {CommandState.PENDING, CommandState.ACKNOWLEDGED, CommandState.RUNNING}
        return tuple(command for command in self.commands.values() if command.state in open_)

    async def start_command(self, start: CommandStart) -> Command:
        found = self.commands[start.command_id]
        if self.runs.setdefault(start.command_id, start.run_id) != start.run_id:
            raise Refused("another runs it", Code.CONFLICT)
        if found.state is CommandState.CANCELLED:
            raise Refused("it was cancelled", Code.CONFLICT)
        self._now(found, CommandState.RUNNING)
        if self.lost_starts:
            self.lost_starts -= 1
            raise Unreachable("the answer was lost")
        return found

    async def complete_command(self, ref: CommandRef, result: CommandResult) -> None:
        if self.lost_results:
            self.lost_results -= 1
            raise Unreachable("not now")
        found = self.commands[ref.command_id]
        self._now(found, CommandState[result.outcome.name])
        self.results.append((ref.command_id, result))

    async def follow_commands(self, node_id: str) -> AsyncIterator[None]:
        assert node_id == "node_1"
        while True:
            await self.told.wait()
            self.told.clear()
            yield

    def _now(self, command: Command, state: CommandState) -> None:
        self.commands[command.id] = Command(command.id, command.sequence, command.kind, command.payload, state)


@dataclass
class Runs:
    """A handler that counts."""

    seen: list[int] = field(default_factory=list)
    hold: asyncio.Event | None = None

    async def __call__(self, command: Command) -> CommandResult:
        self.seen.append(command.sequence)
        if self.hold is not None:
            await self.hold.wait()
        return succeeded(sequence=command.sequence)


@asynccontextmanager
async def working(
    client: FakeClient,
    state_dir: Path,
    handlers: Mapping[str, Handler],
    *,
    boot: str = "boot-1",
    poll_seconds: float = 3600,
) -> AsyncIterator[None]:
    worker = CommandWorker(
        cast("Client", client),
        handlers,
        Ledger(state_dir),
        node_id=lambda: "node_1",
        boot_id=boot,
        timing=FAST,
        poll_seconds=poll_seconds,
    )
    task = asyncio.create_task(worker.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_commands_are_run_in_their_order_and_their_results_told(tmp_path: Path) -> None:
    client, runs = FakeClient(), Runs()
    ids = [client.issue() for _ in range(3)]
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: len(client.results) == 3)
        ids.append(client.issue())
        await until(lambda: len(client.results) == 4)
    assert runs.seen == [1, 2, 3, 4]
    assert [each for each, _ in client.results] == ids
    assert client.result(ids[3]).result == {"sequence": 4}


async def test_polling_finds_what_no_subscription_told(tmp_path: Path) -> None:
    client, runs = FakeClient(), Runs()
    async with working(client, tmp_path, {"diag.nvml": runs}, poll_seconds=0.01):
        await until(lambda: client.takes > 2)
        client.issue()
        client.told.clear()
        await until(lambda: client.results)


async def test_a_kind_without_a_handler_is_declined_and_never_started(tmp_path: Path) -> None:
    client = FakeClient()
    command_id = client.issue("node.reboot")
    async with working(client, tmp_path, {}):
        await until(lambda: client.results)
    assert client.result(command_id).reason == "unsupported"


async def test_what_was_cancelled_meanwhile_is_not_run(tmp_path: Path) -> None:
    client, runs = FakeClient(), Runs(hold=asyncio.Event())
    client.issue()
    second = client.issue()
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: runs.seen)
        client._now(client.commands[second], CommandState.CANCELLED)
        assert runs.hold is not None
        runs.hold.set()
        await until(lambda: client.results)
        third = client.issue()
        await until(lambda: len(client.results) == 2)
    assert runs.seen == [1, 3]
    assert client.results[1][0] == third


async def test_a_lost_answer_neither_loses_a_run_nor_doubles_it(tmp_path: Path) -> None:
    client, runs = FakeClient(lost_starts=1, lost_results=2), Runs()
    command_id = client.issue()
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: client.results)
    assert runs.seen == [1]
    assert client.result(command_id).outcome is CommandOutcome.SUCCEEDED


async def test_of_two_agents_that_speak_for_one_node_one_runs_a_command(tmp_path: Path) -> None:
    client, runs = FakeClient(), Runs()
    command_id = client.issue()
    taken = await client.take_commands("node_1")
    client.runs[command_id] = "the other's"
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: client.takes > 1 and Ledger(tmp_path).find(command_id) is None)
        await asyncio.sleep(0.02)
    assert len(taken) == 1
    assert runs.seen == []
    assert client.results == []


async def test_a_result_that_could_not_be_told_is_told_after_a_restart(tmp_path: Path) -> None:
    client, runs = FakeClient(lost_results=10_000), Runs()
    command_id = client.issue()
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: client.lost_results < 9_998)
    client.lost_results = 0
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: client.results)
    assert runs.seen == [1]
    assert client.result(command_id).result == {"sequence": 1}


async def test_a_run_that_was_cut_off_is_not_repeated(tmp_path: Path) -> None:
    client, runs = FakeClient(), Runs(hold=asyncio.Event())
    command_id = client.issue()
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: runs.seen)
    async with working(client, tmp_path, {"diag.nvml": runs}):
        await until(lambda: client.results)
    assert runs.seen == [1]
    assert client.result(command_id).reason == "interrupted"


async def test_a_reboot_succeeded_when_the_agent_comes_back_in_another_boot(tmp_path: Path) -> None:
    client, reboots = FakeClient(), Runs(hold=asyncio.Event())
    first = client.issue("node.reboot")
    async with working(client, tmp_path, {"node.reboot": reboots}):
        await until(lambda: reboots.seen)
    async with working(client, tmp_path, {"node.reboot": reboots}, boot="boot-2"):
        await until(lambda: client.results)
        second = client.issue("node.reboot")
        await until(lambda: len(reboots.seen) == 2)
    async with working(client, tmp_path, {"node.reboot": reboots}, boot="boot-2"):
        await until(lambda: len(client.results) == 2)
    assert client.result(first) == succeeded(bootId="boot-2")
    assert client.result(second).reason == "interrupted"


async def test_an_agent_that_lost_its_ledger_does_not_reboot_again_and_cuts_off_no_other_agents_run(
    tmp_path: Path,
) -> None:
    client, reboots = FakeClient(), Runs()
    client.issue("node.reboot", CommandState.RUNNING)
    last = client.issue("diag.nvml")
    async with working(client, tmp_path, {"node.reboot": reboots, "diag.nvml": Runs()}):
        await until(lambda: client.results)
    assert reboots.seen == []
    assert [command_id for command_id, _ in client.results] == [last]


async def test_what_cannot_be_kept_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")
    client, runs = FakeClient(), Runs()
    command_id = client.issue()
    async with working(client, tmp_path / "state", {"diag.nvml": runs}):
        await until(lambda: client.results)
    assert runs.seen == []
    assert client.result(command_id).reason == "no-state"


async def test_a_handler_that_fails_fails_its_command_alone(tmp_path: Path) -> None:
    async def fails(_command: Command) -> CommandResult:
        raise Unreachable("the line broke")

    client, runs = FakeClient(), Runs()
    first, second = client.issue("inventory.refresh"), client.issue()
    async with working(client, tmp_path, {"inventory.refresh": fails, "diag.nvml": runs}):
        await until(lambda: len(client.results) == 2)
    assert (client.result(first).reason, client.result(first).message) == ("failed", "the line broke")
    assert client.result(second).outcome is CommandOutcome.SUCCEEDED


@pytest.mark.parametrize("code", [Code.CONFLICT, Code.NOT_FOUND])
async def test_a_result_that_the_server_does_not_take_is_not_told_for_ever(tmp_path: Path, code: Code) -> None:
    class Forgetful(FakeClient):
        refused = 0

        async def complete_command(self, ref: CommandRef, result: CommandResult) -> None:  # noqa: ARG002
            self.refused += 1
            raise Refused("it ended otherwise", code)

    client = Forgetful()
    ledger = Ledger(tmp_path)
    ledger.note(Entry("cmd_9", 9, "diag.nvml", Phase.DONE, "run", "boot-1", succeeded()))
    async with working(client, tmp_path, {}, poll_seconds=0.01):
        await until(lambda: client.takes > 3)
    assert client.refused == 1
