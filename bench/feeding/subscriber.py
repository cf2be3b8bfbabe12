"""One subscriber over graphql-transport-ws, as cheap as Python makes it: a thousand of them fit into one process."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from bench.feeding import frames
from bench.feeding.sequence import Sequence

# Events of the bench say their number where others have a reason.
NUMBERED: Final = re.compile(rb'"reason":\s?"bench-(\d+)"')
_CURSOR: Final = re.compile(rb'"cursor":\s?"([^"]+)"')
_QUOTED: Final = 500


@dataclass(frozen=True, slots=True)
class Target:
    """Where to subscribe, and to what."""

    host: str
    port: int
    path: str
    token: str
    document: str


class Subscriber(asyncio.Protocol):
    """A socket with one subscription, which begins behind `after` if it is given."""

    def __init__(self, target: Target, sequence: Sequence, ended: "Callable[[Subscriber], None]") -> None:
        self.sequence = sequence
        self.after: str | None = None
        self.subscribed = False
        self.wrong = ""
        self.refused = False
        """Whether the server said that something is wrong with what was asked."""
        self.closed: int | None = None
        """The code that the server closed the socket with."""
        self.transport: asyncio.Transport | None = None
        self.messages = 0
        self._target = target
        self._ended = ended
        self._opening = b""
        self._open = False
        self._frames = frames.Frames()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the socket."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self.transport.write(frames.opening(self._target.host, self._target.port, self._target.path))

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that it is over."""
        self.transport = None
        self.subscribed = False
        self.wrong = self.wrong or f"the connection was lost: {exc!r}"
        self._ended(self)

    def data_received(self, data: bytes) -> None:
        """Take what came; everything in it came now."""
        now = time.monotonic_ns()
        if not self._open:
            data = self._opened(data)
        for opcode, payload in self._frames.take(data):
            if opcode == frames.TEXT:
                self._message(payload, now)
            elif opcode == frames.PING:
                self._send(frames.frame(frames.PONG, payload))
            elif opcode == frames.CLOSE:
                self.closed = int.from_bytes(payload[:2])
                self._fail(f"closed with {self.closed} {payload[2:].decode(errors='replace')}")

    def _opened(self, data: bytes) -> bytes:
        self._opening += data
        head, found, rest = self._opening.partition(b"\r\n\r\n")
        if not found:
            return b""
        if not head.startswith(b"HTTP/1.1 101"):
            self.refused = True
            self._fail(head[:_QUOTED].decode(errors="replace"))
            return b""
        self._open = True
        token = f"Bearer {self._target.token}"
        self._send(frames.message(type="connection_init", payload={"authorization": token}))
        return rest

    def _message(self, payload: bytes, now: int) -> None:
        numbered = NUMBERED.search(payload)
        if numbered is not None:
            self.messages += 1
            self.sequence.take(int(numbered[1]), now)
            if not self.sequence.keeps:  # one that may have to resume
                self.after = _cursor(payload, self.after)
            return
        self._other(json.loads(payload))

    def _other(self, said: dict[str, Any]) -> None:
        match said:
            case {"type": "connection_ack"}:
                self._subscribe()
            case {"type": "ping"}:
                self._send(frames.message(type="pong"))
            case {"type": "next", "payload": {"data": dict()} as payload} if not payload.get("errors"):
                pass  # an event that is not of the bench
            case _:
                self.refused = True
                self._fail(json.dumps(said)[:_QUOTED])

    def _subscribe(self) -> None:
        payload: dict[str, Any] = {"query": self._target.document}
        if self.after is not None:
            payload["variables"] = {"after": self.after}
        self._send(frames.message(id="1", type="subscribe", payload=payload))
        self.subscribed = True

    def _send(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _fail(self, wrong: str) -> None:
        self.wrong = wrong
        if self.transport is not None:
            self.transport.abort()


def _cursor(payload: bytes, otherwise: str | None) -> str | None:
    found = _CURSOR.search(payload)
    return found[1].decode() if found else otherwise
