"""A graphql-transport-ws client over a real socket."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

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


def narrow_socket(address: str) -> socket.socket:
    """Connect to a server with as small a receive buffer as the kernel has."""
    found = urlsplit(address)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((found.hostname, found.port))
    made.settimeout(0)
    return made


@asynccontextmanager
async def open_socket(address: str, token: str, **more: str) -> AsyncIterator[Socket]:
    """Connect, send connection_init with the token (and more), and wait for the acknowledgement."""
    async with _connected(address, None, {"authorization": f"Bearer {token}", **more}) as opened:
        yield opened


@asynccontextmanager
async def open_narrow_socket(address: str, token: str) -> AsyncIterator[Socket]:
    """The same over a connection for which the kernel keeps little while nobody reads."""
    async with _connected(address, narrow_socket(address), {"authorization": f"Bearer {token}"}) as opened:
        yield opened


@asynccontextmanager
async def _connected(address: str, sock: socket.socket | None, payload: Mapping[str, str]) -> AsyncIterator[Socket]:
    url = address.replace("http", "ws", 1) + "/graphql"
    protocols = [Subprotocol("graphql-transport-ws")]
    # What a test sends to fill buffers would be compressed to nothing.
    narrow: dict[str, Any] = {} if sock is None else {"sock": sock, "compression": None, "max_queue": 1}
    async with connect(url, subprotocols=protocols, **narrow) as connection:
        await connection.send(json.dumps({"type": "connection_init", "payload": payload}))
        opened = Socket(connection)
        assert (await opened.message())["type"] == "connection_ack"
        yield opened
