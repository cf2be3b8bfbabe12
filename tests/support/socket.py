"""A graphql-transport-ws client over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

RECEIVE_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Socket:
    """An acknowledged connection."""

    connection: ClientConnection

    async def subscribe(self, query: str, *, id: str = "1", **variables: Any) -> None:  # noqa: A002, ANN401 - protocol's name
        """Start an operation."""
        payload = {"query": query, "variables": variables}
        await self.connection.send(json.dumps({"id": id, "type": "subscribe", "payload": payload}))

    async def message(self) -> dict[str, Any]:
        """Return the next message; text frames only."""
        async with asyncio.timeout(RECEIVE_SECONDS_MAX):
            frame = await self.connection.recv()
        assert isinstance(frame, str)
        return dict(json.loads(frame))

    async def next(self) -> dict[str, Any]:
        """Return the data of the next result."""
        said = await self.message()
        assert said["type"] == "next", said
        assert "errors" not in said["payload"], said
        return dict(said["payload"]["data"])

    async def error(self) -> dict[str, Any]:
        """Return the first error of the next message, a result's or the operation's."""
        said = await self.message()
        errors = said["payload"]["errors"] if said["type"] == "next" else said["payload"]
        return dict(errors[0])


@asynccontextmanager
async def open_socket(address: str, token: str, **more: str) -> AsyncIterator[Socket]:
    """Connect, send connection_init with the token (and more), and wait for the acknowledgement."""
    url = address.replace("http", "ws", 1) + "/graphql"
    async with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")]) as connection:
        payload = {"authorization": f"Bearer {token}", **more}
        await connection.send(json.dumps({"type": "connection_init", "payload": payload}))
        socket = Socket(connection)
        assert (await socket.message())["type"] == "connection_ack"
        yield socket
