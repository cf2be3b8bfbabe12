"""GraphQL over server-sent events: each event of the feed with its cursor as `id`, so that streams go on where cut.

Sources: the HTML standard's "Server-sent events", and the distinct connections mode of GraphQL over SSE
(https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast

from strawberry.http import GraphQLHTTPResponse
from strawberry.http.streaming import SSETransport

from domain.cursor import encode_feed
from resolvers.context import Context

RETRY_MILLISECONDS: Final = 2000
PREAMBLE: Final = f"retry: {RETRY_MILLISECONDS}\r\n\r\n"
"""Sent at once: it tells proxies and clients that the stream is open, and how long to wait before it is opened anew."""


class Told(dict[str, Any]):
    """A result with the cursor behind its event."""

    cursor: str | None = None


def told(result: GraphQLHTTPResponse, context: Context) -> GraphQLHTTPResponse:
    """Note where a stream's subscription stands with this result; a stream has one operation."""
    if not context.places:
        return result
    noted = Told(result)
    for place in context.places:
        noted.cursor = encode_feed(place.offered)
    return cast("GraphQLHTTPResponse", noted)


class EventStream(SSETransport):
    """Strawberry's server-sent events, with ids."""

    def encode_next(self, response: GraphQLHTTPResponse, encode_json: Callable[[object], str]) -> str:
        """Encode a result."""
        text = super().encode_next(response, encode_json)
        cursor = response.cursor if isinstance(response, Told) else None
        return text if cursor is None else f"id: {cursor}\r\n{text}"


async def bounded(
    stream: AsyncIterator[str], stopping: asyncio.Event, ended: asyncio.Future[str], last: Callable[[str], str]
) -> AsyncIterator[str]:
    """Yield the stream until the server stops, which cuts it off so that clients come again, or `ended` says why.

    Then `last` makes of the reason what the client is told.
    """
    stop = asyncio.create_task(stopping.wait())
    ends: set[asyncio.Future[Any]] = {stop, ended}
    try:
        yield PREAMBLE
        while True:
            following = asyncio.ensure_future(anext(stream))
            await asyncio.wait({following, *ends}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                if ended.done():
                    yield last(ended.result())
                return
            try:
                yield following.result()
            except StopAsyncIteration:
                return
    finally:
        stop.cancel()
