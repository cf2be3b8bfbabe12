"""What a whole fleet asks of the server that one agent would not: its nodes' commands in a few requests."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from agent.client import Client
from agent.wire import Command

TAKEN_AT_ONCE_MAX: Final = 25
"""Nodes whose commands are taken in one request; the server takes 50 aliases."""
FOLLOW_FLEET: Final = """subscription FollowFleetCommands($after: Cursor) {
  events(after: $after, filter: {type: ["node.command.changed"]}) {
    cursor ... on NodeCommandChanged { nodeId state }
  }
}"""
_FIELDS: Final = "id sequence kind payload state"
_PENDING: Final = "PENDING"


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    cursor: str
    node_id: str
    state: str


class FleetClient(Client):
    """An agent's client that speaks for many nodes."""

    async def take_commands_of(self, node_ids: Sequence[str]) -> tuple[tuple[Command, ...], ...]:
        """Return what each of at most `TAKEN_AT_ONCE_MAX` nodes is to do now, in their order."""
        variables = {f"i{place}": node_id for place, node_id in enumerate(node_ids)}
        answer = await self._execute(take_query(len(node_ids)), variables, dict[str, tuple[Command, ...]])
        return tuple(answer[f"n{place}"] for place in range(len(node_ids)))

    async def follow_fleet_commands(self, after: str | None) -> AsyncIterator[tuple[str, str | None]]:
        """Yield for each change of a command the cursor and, where it is new, its node; any node of the tenant."""
        async for data in self._follow(FOLLOW_FLEET, {"after": after}):
            event = msgspec.json.decode(data, type=dict[str, _Event])["events"]
            yield event.cursor, event.node_id if event.state == _PENDING else None


def take_query(count: int) -> str:
    """Write the mutation that takes the commands of `count` nodes: `$i0` is answered as `n0`, and so on."""
    parameters = ", ".join(f"$i{place}: ID!" for place in range(count))
    fields = "\n".join(f"  n{place}: takeCommands(nodeId: $i{place}) {{ {_FIELDS} }}" for place in range(count))
    return f"mutation TakeCommandsOf({parameters}) {{\n{fields}\n}}"
