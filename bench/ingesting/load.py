"""The load, as a process of its own: prepared bodies posted over kept connections, every answer looked at.

`python -m bench.ingesting.load PORT TOKEN FILE CONNECTIONS SECONDS` posts the lines of a file over and over for so many
seconds, or each once for 0, and prints what it saw as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Final, cast

import uvloop

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_REFUSED: Final = (b'"error":{', b'"errors":')


@dataclass(frozen=True, slots=True)
class Load:
    """What was seen: times from the last byte of a request to the last of its answer."""

    requests: int
    seconds: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class _Connection(asyncio.Protocol):
    """Posts one request after another."""

    def __init__(self, requests: Iterator[bytes], until: float, took: list[float]) -> None:
        self._requests = requests
        self._until = until
        self._took = took
        self._answer = bytearray()
        self._begun = 0.0
        self._transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self._next(self._transport)

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head = self._answer.find(_HEAD_END)
        if head < 0 or self._transport is None:
            return
        at = self._answer.find(_LENGTH, 0, head) + len(_LENGTH)
        length = int(self._answer[at : self._answer.find(b"\r\n", at)])
        if len(self._answer) < head + len(_HEAD_END) + length:
            return
        if not self._answer.startswith(b"HTTP/1.1 200") or any(word in self._answer for word in _REFUSED):
            self._end(RuntimeError(bytes(self._answer[-1000:]).decode("utf-8", "replace")))
            return
        self._took.append(time.perf_counter() - self._begun)
        self._answer.clear()
        self._next(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or RuntimeError("the server closed a connection"))

    def _next(self, transport: asyncio.Transport) -> None:
        request = next(self._requests, None) if time.perf_counter() < self._until else None
        if request is None:
            self._end(None)
            transport.close()
            return
        transport.write(request)
        self._begun = time.perf_counter()

    def _end(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error) if error else self.done.set_result(None)


async def load(port: int, token: str, bodies: list[bytes], connections: int, seconds: float) -> Load:
    """Post bodies; raises RuntimeError with an answer that is not whole."""
    head = (
        f"POST /graphql HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
    )
    requests = [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    begun = time.perf_counter()
    until = begun + seconds if seconds else float("inf")
    took: list[float] = []
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda own=own: _Connection(own, until, took), "127.0.0.1", port)
        for own in _shares(requests, connections, forever=bool(seconds))
    ]
    await asyncio.gather(*(connection.done for _, connection in opened))
    return _seen(took, time.perf_counter() - begun)


def _shares(requests: list[bytes], connections: int, *, forever: bool) -> list[Iterator[bytes]]:
    """Return what each connection posts: over and over requests of its own, or what is next of all that are left.

    A node does not send a heartbeat before its last one is answered.
    """
    connections = min(connections, len(requests))
    if forever:
        return [cycle(requests[first::connections]) for first in range(connections)]
    left = iter(requests)
    return [left] * connections


def _seen(took: list[float], seconds: float) -> Load:
    took.sort()
    p50, p95, p99 = (1000 * took[min(len(took) - 1, int(len(took) * share))] for share in (0.5, 0.95, 0.99))
    return Load(len(took), seconds, p50, p95, p99)


if __name__ == "__main__":
    port, token, file, connections, seconds = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        lines = Path(file).read_bytes().splitlines()
        seen = runner.run(load(int(port), token, lines, int(connections), float(seconds)))
    print(json.dumps(asdict(seen)))
