"""A client that keeps a live view of nodes, as a console does."""

from typing import Any

from tests.support.socket import Socket


class KeptView:
    """The nodes that a client was told of, and the cursor it would resume from."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}
        self.cursor: str | None = None

    def take(self, change: dict[str, Any]) -> None:
        """Follow a change, as the schema says how."""
        match change["kind"]:
            case "ENTERED" | "CHANGED":
                self.nodes[change["nodeId"]] = change["node"]
            case "LEFT":
                self.nodes.pop(change["nodeId"], None)
        self.cursor = change["cursor"] or self.cursor

    async def sync(self, socket: Socket) -> None:
        """Follow changes up to the mark."""
        while (change := (await socket.next())["nodeChanges"])["kind"] != "SYNCED":
            self.take(change)
        self.take(change)
