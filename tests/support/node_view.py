"""A client that keeps a live view of nodes, as a console does."""

from typing import Any

from tests.support.socket import Socket


class KeptView:
    """The nodes that a client was told of, and the cursor it would resume from."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}
        self.cursor: str | None = None
        self.kinds: list[str] = []

    async def sync(self, socket: Socket) -> None:
        """Follow what comes first, up to the mark; of a resumed view nobody knows what fitted before."""
        while (change := (await socket.next())["nodeChanges"])["kind"] != "SYNCED":
            assert change["kind"] in {"ENTERED", "LEFT"}
            assert change["cursor"] == self.cursor
            self._take(change)
        self._take(change)

    async def follow(self, socket: Socket) -> None:
        """Follow one change: of a view that is whole, what comes says what was."""
        change = (await socket.next())["nodeChanges"]
        assert (change["kind"] == "ENTERED") == (change["nodeId"] not in self.nodes)
        self._take(change)

    def _take(self, change: dict[str, Any]) -> None:
        match change["kind"]:
            case "ENTERED" | "CHANGED":
                assert change["node"]["id"] == change["nodeId"]
                self.nodes[change["nodeId"]] = change["node"]
            case "LEFT":
                assert change["node"] is None
                self.nodes.pop(change["nodeId"], None)
        self.kinds.append(change["kind"])
        self.cursor = change["cursor"] or self.cursor
