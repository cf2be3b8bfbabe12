"""Commands of nodes: the type, and the mutations by which they are issued, cancelled, taken, started and completed."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, cast

import strawberry

from db.tables import CommandRow
from domain.commands import Result
from domain.errors import InvalidInput
from resolvers import commands as cases
from resolvers.commands import Given
from schema.arguments import Id
from schema.enums import CommandOutcome, CommandState
from schema.objects import Info, NodeInterface, RowTyped
from schema.scalars import JsonValue

NodeId = Annotated[strawberry.ID, strawberry.argument(description="The node.")]


@strawberry.type(
    description="What a node is told to do once: delivered at least once, started at most once, and finished for good."
)
class Command(RowTyped, NodeInterface):
    """A row of commands."""

    row: ClassVar = CommandRow

    node_id: strawberry.ID = strawberry.field(description="The node.")
    sequence: int = strawberry.field(description="Its number among the node's commands, from 1 in the order of issue.")
    kind: str = strawberry.field(description="inventory.refresh, diag.nvml, diag.dcgm, node.reboot or gpu.reset.")
    payload: JsonValue = strawberry.field(description="Its parameters.")
    state: CommandState = strawberry.field(description="Where it is on its way.")
    not_before: datetime | None = strawberry.field(description="It is not delivered before this.")
    not_after: datetime = strawberry.field(description="It is not started after this.")
    issued_by: str = strawberry.field(description="Who asked for it: the name of a token, or `acceptance`.")
    request_id: str = strawberry.field(description="The request that asked for it, as the log has it.")
    created_at: datetime = strawberry.field(description="When it was asked for.")
    started_at: datetime | None = strawberry.field(description="When the agent started it.")
    finished_at: datetime | None = strawberry.field(description="When it ended, however it did.")
    reason: str | None = strawberry.field(
        description="Why it ended like that, in one word: `unsupported`, `interrupted`, `deadline`, `not-started`, …."
    )
    message: str | None = strawberry.field(description="Why, for people.")
    result: JsonValue | None = strawberry.field(description="What the agent found, a document of the kind's own.")


@strawberry.input(description="What a node is to do.")
class CommandInput:
    """A command."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    kind: str = strawberry.field(description="inventory.refresh, diag.nvml, diag.dcgm, node.reboot or gpu.reset.")
    key: str = strawberry.field(
        description="Makes the request repeatable: the same again is answered with the command that is there."
    )
    payload: JsonValue | None = strawberry.field(
        default=None,
        description="Its parameters: `gpuCount` of diag.nvml and `level` of diag.dcgm (optional), `deviceId` of "
        "gpu.reset; of others none.",
    )
    not_before: datetime | None = strawberry.field(default=None, description="Do not deliver it before this.")
    not_after: datetime | None = strawberry.field(
        default=None, description="Do not start it after this; by default an hour after it may be started."
    )

    def given(self) -> Given:
        """Return the command as the use case takes it."""
        payload: Any = {} if self.payload is None else self.payload
        if not isinstance(payload, dict):
            raise InvalidInput(f"payload: an object is expected, not {type(payload).__name__}")
        return Given(
            node_id=self.node_id,
            kind=self.kind,
            payload=payload,
            key=self.key,
            not_before=self.not_before,
            not_after=self.not_after,
        )


@strawberry.input(description="A command of a node, for the node's agent.")
class CommandRef:
    """Node and command."""

    node_id: strawberry.ID = strawberry.field(description="The node that the agent speaks for.")
    command_id: strawberry.ID = strawberry.field(description="The command, which is that node's.")


@strawberry.input(description="A command that an agent is about to run.")
class StartCommandInput(CommandRef):
    """A start."""

    run_id: str = strawberry.field(
        description="What the agent calls this run; it says the same when it repeats the request, and nobody else does."
    )


@strawberry.input(description="What became of a command.")
class CommandResultInput(CommandRef):
    """A result."""

    outcome: CommandOutcome = strawberry.field(description="Whether it was done.")
    reason: str | None = strawberry.field(default=None, description="Why not, in one word, such as `unsupported`.")
    message: str | None = strawberry.field(default=None, description="Why not, for people; up to 4,096 characters.")
    result: JsonValue | None = strawberry.field(
        default=None, description="What was found; up to 256 KiB of JSON, 64-bit amounts as strings."
    )


@strawberry.type
class CommandMutations:
    """Root fields about commands; each asks for permission first."""

    @strawberry.mutation(
        description="Tell a node to do something once. CONFLICT when the key stands for another command."
    )
    async def issue_command(
        self,
        info: Info,
        input: Annotated[CommandInput, strawberry.argument(description="The command.")],  # noqa: A002 - as others
    ) -> Command:
        """Issue a command."""
        return cast("Command", await cases.issue_command(info.context, input.given()))

    @strawberry.mutation(
        description="Tell a node to collect its inventory anew. One that waits for that already is not told twice."
    )
    async def refresh_inventory(self, info: Info, id: Id) -> Command:  # noqa: A002 - contract
        """Issue an inventory.refresh."""
        return cast("Command", await cases.refresh_inventory(info.context, id))

    @strawberry.mutation(description="Call a command off that was not started. CONFLICT when it runs or is finished.")
    async def cancel_command(
        self,
        info: Info,
        id: Id,  # noqa: A002 - as others
        reason: Annotated[str | None, strawberry.argument(description="Why, for people.")] = None,
    ) -> Command:
        """Cancel a command."""
        return cast("Command", await cases.cancel_command(info.context, id, reason))

    @strawberry.mutation(
        description="An agent asks what its node is to do now: pending commands become acknowledged, and those that it "
        "started and has not completed come again. Nothing that is cancelled or past its not-after does."
    )
    async def take_commands(self, info: Info, node_id: NodeId) -> list[Command]:
        """Take the commands that are due."""
        return cast("list[Command]", await cases.take_commands(info.context, node_id))

    @strawberry.mutation(
        description="An agent is about to run a command. CONFLICT when it must not: it was cancelled, is over, is not "
        "due, or is another run's."
    )
    async def start_command(
        self,
        info: Info,
        input: Annotated[StartCommandInput, strawberry.argument(description="The run.")],  # noqa: A002 - as others
    ) -> Command:
        """Start a command."""
        started = await cases.start_command(info.context, input.node_id, input.command_id, input.run_id)
        return cast("Command", started)

    @strawberry.mutation(
        description="An agent says what became of a command; the same again changes nothing. CONFLICT when it ended "
        "otherwise."
    )
    async def complete_command(
        self,
        info: Info,
        input: Annotated[CommandResultInput, strawberry.argument(description="The result.")],  # noqa: A002 - contract
    ) -> Command:
        """Complete a command."""
        result = Result(
            outcome=input.outcome, reason=input.reason, message=input.message, document=cast("Any", input.result)
        )
        return cast("Command", await cases.complete_command(info.context, input.node_id, input.command_id, result))
