"""The way to one server for HTTP and sockets: it loses, cuts, repeats, delays and reorders, as a seed says."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum

from tests.support.proxy import Proxy, to_port

_HEAD_BYTES_MAX = 65536


class Mishap(StrEnum):
    """What becomes of a request."""

    NONE = "none"
    DUPLICATED = "duplicated"
    DELAYED = "delayed"
    LATE = "late"
    """The client is cut off, and the request arrives when the client has gone on: among and after newer ones."""
    TRUNCATED = "truncated"
    UNANSWERED = "unanswered"
    """It arrives, and its answer does not."""


class BadNetwork(Proxy):
    """A proxy that knows where an HTTP request ends; sockets pass as they are until they are cut."""

    def __init__(self, port: int, mishaps: random.Random, share: float) -> None:
        super().__init__(to_port(port))
        self._mishaps = mishaps
        self.share = share
        """Which part of the requests meets with a mishap."""
        self.met: dict[Mishap, int] = dict.fromkeys(Mishap, 0)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request, or a socket."""
        head = await reader.readuntil(b"\r\n\r\n")
        if b"upgrade: websocket" in head.lower():
            await self._tie(head, reader, writer)
        else:
            await self._pass_request(head, reader, writer)

    async def _pass_request(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = head.split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length")), 0)
        body = await reader.readexactly(length)
        kept = [line for line in lines[1:-2] if not line.lower().startswith(b"connection")]
        request = b"\r\n".join([lines[0], *kept, b"connection: close", b"", body])
        mishap = Mishap.NONE
        if self._mishaps.random() < self.share:
            mishap = self._mishaps.choice([each for each in Mishap if each is not Mishap.NONE])
        self.met[mishap] += 1
        match mishap:
            case Mishap.LATE:
                task = asyncio.create_task(self._late(request, self._mishaps.uniform(0.1, 1.5)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            case Mishap.TRUNCATED:
                await self._exchange(request[: -max(len(body) // 2, 1)], half=True)
                return
            case Mishap.UNANSWERED:
                await self._exchange(request)
                return
            case Mishap.DUPLICATED:
                await self._exchange(request)
            case Mishap.DELAYED:
                await asyncio.sleep(self._mishaps.uniform(0.05, 0.5))
            case Mishap.NONE:
                pass
        writer.write(await self._exchange(request))
        await writer.drain()

    async def _late(self, request: bytes, seconds: float) -> None:
        await asyncio.sleep(seconds)
        with suppress(OSError):
            await self._exchange(request)

    async def _exchange(self, request: bytes, *, half: bool = False) -> bytes:
        reader, writer = await self._connect()
        with self._cuttable(writer):
            writer.write(request)
            await writer.drain()
            return b"" if half else await reader.read(-1)


@asynccontextmanager
async def bad_network(port: int, mishaps: random.Random, share: float) -> AsyncIterator[BadNetwork]:
    """Run one while the block lasts."""
    running = BadNetwork(port, mishaps, share)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await running.close()
