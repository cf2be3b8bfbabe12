"""GraphQL over server-sent events: each event of the feed with its cursor as `id`, so that streams go on where cut.

Sources: the HTML standard's "Server-sent events", and the distinct connections mode of GraphQL over SSE
(https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final, cast

from starlette.responses import StreamingResponse
from starlette.types import Send
from strawberry.http.streaming import SSETransport

from domain.cursor import encode_feed
from schema.batches import Part, Results

HEARTBEAT_SECONDS: Final = 15.0
"""How long a stream may be silent: proxies close what is silent for a minute or less."""
SILENCE: Final = ": nothing new\r\n"
HEARTBEAT: Final = f"{SILENCE}\r\n"
_FIRST_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""When it is looked whether a new stream's place is known."""
PREAMBLE: Final = "retry: 2000\r\n\r\n"
"""Sent at once: it tells proxies and clients that the stream is open, and to wait 2 s before it is opened anew."""
_closing: Final = set[asyncio.Task[None]]()


class EventStream(SSETransport):
    """Strawberry's server-sent events, with ids."""

    async def encode_all(self, results: Results) -> AsyncGenerator[str, None]:
        """Encode several results, each with the cursor behind it, as they are made and taken."""
        async with aclosing(results.pieces()) as pieces:
            async for parts in pieces:
                yield "".join(self._encoded(part) for part in parts)
                results.standing.move(parts[-1].place)

    def _encoded(self, part: Part) -> str:
        text = self.encode_event("next", part.json().decode())
        return text if part.place is None else f"id: {encode_feed(part.place)}\r\n{text}"


class EventStreamResponse(StreamingResponse):
    """A response whose stream ends with it: Starlette leaves that to the garbage collector."""

    async def stream_response(self, send: Send) -> None:
        """Send the stream to its end, or until the client has left."""
        stream = cast("AsyncGenerator[str, None]", self.body_iterator)
        try:
            await super().stream_response(send)
        finally:
            await _regardless(stream.aclose())


async def kept_open(
    stream: AsyncGenerator[str, None],
    stopping: asyncio.Event,
    ended: asyncio.Future[str],
    last: Callable[[str], str],
    place: Callable[[], str | None],
) -> AsyncGenerator[str, None]:
    """Yield the stream, and a comment where it is silent, until it ends; then it is closed.

    It is cut off when the server stops, so that clients come again. When `ended` says why, `last` makes of the reason
    what the client is told. Comments tell the cursor that `place` gives, the first as soon as there is one: who is cut
    off before an event, or long after the last one that it was sent, goes on from there.
    """
    stop = asyncio.create_task(stopping.wait())
    ends: set[asyncio.Future[Any]] = {stop, ended}
    following: asyncio.Future[str] | None = None
    looks = iter(_FIRST_SECONDS)
    told: str | None = None
    try:
        yield PREAMBLE
        while True:
            following = following or asyncio.ensure_future(anext(stream))
            pause = next(looks, HEARTBEAT_SECONDS)
            done, _ = await asyncio.wait({following, *ends}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if following in done:
                try:
                    text = following.result()
                except StopAsyncIteration:
                    return
                following = None
                looks = iter(())
                yield text
            elif ended in done:
                yield last(ended.result())
                return
            elif stop in done:
                return
            elif (here := place()) != told and here is not None:
                looks, told = iter(()), here
                yield f"{SILENCE}id: {here}\r\n\r\n"
            elif pause == HEARTBEAT_SECONDS:
                yield HEARTBEAT
    finally:
        stop.cancel()
        await _regardless(_close(stream, following))


async def _close(stream: AsyncGenerator[str, None], following: asyncio.Future[str] | None) -> None:
    if following is not None:
        following.cancel()
        await asyncio.wait({following})
    await stream.aclose()


async def _regardless(closing: Any) -> None:  # noqa: ANN401 - any coroutine of one result or another
    """Wait for what closes something; it goes on when the wait is cancelled, as often as that may be."""
    task = asyncio.ensure_future(closing)
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    await asyncio.shield(task)
