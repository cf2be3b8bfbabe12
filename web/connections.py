"""uvicorn's connections, with a bound on what waits for a client, and an end for a client that takes nothing of it.

A response or a message is written when the one before it has been taken but for `bytes_max`; who writes waits until
then. Nothing bounds that wait: a client may take its time as long as it takes something, and one that takes nothing
for `seconds_max` is given up, with whatever its connection was doing.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import structlog
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame
from websockets.http11 import Request

from web.compression import COMPRESSED_FROM_BYTES, LEVEL

TOO_SLOW: Final = 4410
"""Close code of a socket whose client was given up; graphql-ws takes it for one after which it may come again."""
_LOOKS: Final = 4
"""How often a connection is looked at while a client's time runs: so many looks without progress are its end."""
# Nothing is kept of a message for the next one: 1,000 clients' windows would be 100 MB.
_DEFLATE: Final = ServerPerMessageDeflateFactory(
    server_no_context_takeover=True, client_no_context_takeover=True, compress_settings={"level": LEVEL}
)
_log = structlog.get_logger("connections")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a connection may keep for its client, and for how long the client may take nothing of it."""

    bytes_max: int
    seconds_max: float


class Outlet:
    """What waits to be taken by the client of one connection."""

    def __init__(self, transport: asyncio.WriteTransport, bytes_max: int) -> None:
        transport.set_write_buffer_limits(high=bytes_max)
        self._transport = transport
        self._waiting = 0
        self._looks = 0
        self.held = False
        """Whether so much waits that nothing more is written."""
        self.taken_at = 0.0
        """When the client last took so much that it was no longer held."""

    def hold(self) -> None:
        """Note that too much waits."""
        self.held = True

    def release(self, now: float) -> None:
        """Note that the client has taken what was too much."""
        self.held = False
        self.taken_at = now
        self._waiting = 0

    def look(self) -> int:
        """Return how many looks in a row found that nothing was taken since the look before; 0 while nothing need be.

        Looks are counted, not seconds: a process that was stopped for a while must not blame its clients for it.
        """
        waiting = self._transport.get_write_buffer_size() if self.held or self._transport.is_closing() else 0
        self._looks = self._looks + 1 if 0 < self._waiting <= waiting else 0
        self._waiting = waiting
        return self._looks

    def allow_more_time(self) -> None:
        """Count from now on."""
        self._looks = 0


class Connection(Protocol):
    """A connection of either kind."""

    outlet: Outlet

    def give_up(self) -> None:
        """End it, whose client takes nothing."""


class HttpConnection(HttpToolsProtocol):
    """A connection of requests and event streams."""

    def __init__(self, bounds: Bounds, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*arguments, **named)
        self._bounds = bounds
        self.outlet: Outlet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound what is written."""
        self.outlet = Outlet(transport, self._bounds.bytes_max)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        """Note that too much waits."""
        self.outlet.hold()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it was taken."""
        self.outlet.release(self.loop.time())
        super().resume_writing()

    def give_up(self) -> None:
        """Cut it: there is no way to say anything behind what is not taken."""
        self.transport.abort()


class LargeMessages(Extension):
    """Compression of those messages that are worth it, as RFC 7692 (section 6) lets us choose.

    An event of the feed is sent to many: compressing it takes longer than all else that is done for one of them.
    """

    def __init__(self, compression: Extension) -> None:
        self.name = compression.name
        self._compression = compression

    def encode(self, frame: Frame) -> Frame:
        """Compress what is large."""
        return frame if len(frame.data) < COMPRESSED_FROM_BYTES else self._compression.encode(frame)

    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        """Decompress what the client has compressed."""
        return self._compression.decode(frame, max_size=max_size)


class SocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket; one message at a time waits to be written, whatever the number of operations."""

    def __init__(self, bounds: Bounds, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*arguments, **named)
        self.conn.available_extensions = [_DEFLATE]
        self._bounds = bounds
        self._turn = asyncio.Lock()
        self._overdue: bytes | None = None
        self.outlet: Outlet
        self.farewell: Callable[[], str] = str
        """Says the reason that a client is given with `TOO_SLOW`; at most 123 bytes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound what is written."""
        self.outlet = Outlet(transport, self._bounds.bytes_max)
        super().connection_made(transport)

    def handle_connect(self, event: Request) -> None:
        """Let the application reach its connection: it begins after this."""
        super().handle_connect(event)
        self.conn.extensions = [LargeMessages(extension) for extension in self.conn.extensions]
        if hasattr(self, "scope"):  # else the handshake was refused
            self.scope["state"]["connection"] = self

    def pause_writing(self) -> None:
        """Note that too much waits."""
        self.outlet.hold()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it was taken."""
        self.outlet.release(self.loop.time())
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the application, which holds this: the two would be freed only when cycles are looked for."""
        super().connection_lost(exc)
        self.farewell = str
        if hasattr(self, "scope"):
            self.scope["state"].pop("connection", None)

    async def send(self, message: ASGISendEvent) -> None:
        """Send a message in its turn; a close overtakes all that are not written yet."""
        if message["type"] == "websocket.close":
            self.writable.set()
            await super().send(message)
            return
        async with self._turn:
            await super().send(message)

    async def send_texts(self, texts: Iterable[bytes]) -> int:
        """Send the first of these messages, as many as may wait for the client, in one piece; returns how many.

        Raises ClientDisconnected.
        """
        async with self._turn:
            await self.writable.wait()
            if self.disconnected or self.close_sent:
                raise ClientDisconnected
            room = self._bounds.bytes_max - self.transport.get_write_buffer_size()
            count = 0
            try:
                for text in texts:
                    self.conn.send_text(text)
                    count += 1
                    room -= len(text)
                    if room <= 0:
                        break
            except InvalidState as error:
                raise ClientDisconnected from error
            self.transport.write(b"".join(self.conn.data_to_send()))
            return count

    def handle_ping(self) -> None:
        """Answer, unless the answers would pile up."""
        if self.outlet.held:
            self.conn.data_to_send()
        else:
            super().handle_ping()

    def keepalive_timeout(self) -> None:
        """Give up a client that answers no ping, unless it has been reading: the ping stands behind what it reads.

        The answer may have come while this process was stopped, and not have been read yet: it has a moment more.
        """
        if self.outlet.held or self.outlet.taken_at > self.ping_sent_at:
            self.pong_timer = self.loop.call_later(self._bounds.seconds_max, self.keepalive_timeout)
        elif self._overdue != self.pending_ping_payload:
            self._overdue = self.pending_ping_payload
            self.pong_timer = self.loop.call_later(self._bounds.seconds_max / _LOOKS, self.keepalive_timeout)
        else:
            self.pong_timer = None
            self.give_up()

    def give_up(self) -> None:
        """Say so, and when that is not taken either, cut it."""
        if self.close_sent or self.transport.is_closing():
            self.transport.abort()
            return
        self.outlet.allow_more_time()
        close: Any = {"type": "websocket.close", "code": TOO_SLOW, "reason": self.farewell()}
        closing = self.loop.create_task(self.send(close))
        self.tasks.add(closing)
        closing.add_done_callback(self.tasks.discard)


async def give_up_slow_clients(connections: Collection[object], seconds_max: float) -> None:
    """Give up the connections whose clients take nothing, until cancelled; `connections` are all of this module."""
    while True:
        await asyncio.sleep(seconds_max / _LOOKS)
        for connection in cast("list[Connection]", list(connections)):
            if connection.outlet.look() >= _LOOKS:
                _log.info("a client takes nothing of what was sent to it", kind=type(connection).__name__)
                connection.give_up()
