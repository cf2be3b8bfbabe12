"""A relay of bytes between clients and a server, which fails as networks do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Streams]]
_CHUNK_BYTES = 65536


def to_port(port: int) -> Connect:
    """Lead to a server on this machine."""
    return lambda: asyncio.open_connection("127.0.0.1", port)


def to_path(path: Path) -> Connect:
    """Lead to a server's Unix socket."""
    return lambda: asyncio.open_unix_connection(path)


class Proxy:
    """Passes on what comes; while it is `silent` it takes everything and passes nothing on, and closes nothing."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.connections = 0
        """How many were made so far."""

    def cut(self) -> None:
        """Reset all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def fall_silent(self) -> None:
        """Pass nothing on until `speak`, as a cable that was pulled."""
        self._flowing.clear()

    def speak(self) -> None:
        """Pass on again; what was connected meanwhile is reset, as its ends know nothing of each other any more."""
        self.cut()
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with self._cuttable(writer), suppress(OSError, asyncio.IncompleteReadError):
                await self._handle(reader, writer)
        finally:
            self._tasks.discard(task)

    async def close(self) -> None:
        """Reset everything, and wait until it is."""
        self.cut()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # connections that were aborted are closed in the loop's next turn

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._tie(b"", reader, writer)

    async def _tie(self, said: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what the client has said already, and then everything both ways until one end closes."""
        await self._flowing.wait()
        there_reader, there_writer = await self._connect()
        with self._cuttable(there_writer):
            there_writer.write(said)
            ways = [
                asyncio.create_task(self._pass_on(reader, there_writer)),
                asyncio.create_task(self._pass_on(there_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    @contextmanager
    def _cuttable(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Let `cut` have a connection while the block lasts, and close it then."""
        self._writers.add(writer)
        try:
            yield
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            await self._flowing.wait()
            writer.write(chunk)
            await writer.drain()


@asynccontextmanager
async def proxy(connect: Connect, path: Path | None = None) -> AsyncIterator[Proxy]:
    """Run a proxy, on a port of its own or on a Unix socket, while the block lasts."""
    running = Proxy(connect)
    server = await (
        asyncio.start_unix_server(running.serve, path) if path else asyncio.start_server(running.serve, "127.0.0.1", 0)
    )
    if path is None:
        running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        await running.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await server.wait_closed()
