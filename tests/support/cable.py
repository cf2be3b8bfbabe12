"""A connection between a client and a server that can be cut like a cable."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Cable:
    """Carries bytes both ways for any number of connections."""

    def __init__(self, address: str) -> None:
        found = urlsplit(address)
        self._host, self._port = found.hostname, found.port
        self._ends: set[asyncio.StreamWriter] = set()
        self.address = ""

    def cut(self) -> int:
        """Cut all connections, and say how many there were; new ones may be made."""
        for writer in self._ends:
            writer.transport.abort()
        return len(self._ends) // 2

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        with contextlib.suppress(OSError):
            there, back = await asyncio.open_connection(self._host, self._port)
            pair = {writer, back}
            self._ends |= pair
            try:
                await asyncio.gather(_carry(reader, back), _carry(there, writer))
            finally:
                self._ends -= pair
                for end in pair:
                    end.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def cable_to(address: str) -> AsyncIterator[Cable]:
    """Listen while the block lasts, and carry what comes to the server."""
    cable = Cable(address)
    listener = await asyncio.start_server(cable.join, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()[:2]
    cable.address = f"http://{host}:{port}"
    try:
        yield cable
    finally:
        listener.close()
        cable.cut()
