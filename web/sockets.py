"""GraphQL over WebSocket: `graphql-transport-ws`, with what a client may send and how much waits for it bounded."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol, cast

import orjson
from graphql import GraphQLError
from starlette.websockets import WebSocketDisconnect
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from strawberry.subscriptions.protocols.graphql_transport_ws.types import (
    ConnectionInitMessage,
    Message,
    SubscribeMessage,
)
from uvicorn.protocols.utils import ClientDisconnected

from domain.cursor import encode_feed
from domain.errors import Code, InvalidInput
from resolvers.context import Context
from resolvers.places import resume_from
from schema.batches import Results
from web.connections import SocketConnection
from web.documents import DocumentRefused, Documents, malformed_request
from web.freshness import asked_freshness
from web.sessions import Sessions

FORBIDDEN: Final = 4403
"""Close code of a socket whose token does not hold, at the start or no more; graphql-ws may come again with another."""
REASON_BYTES_MAX: Final = 123
"""What a close frame has room for (RFC 6455, 5.5.1)."""
SUBSCRIPTIONS_PER_SOCKET_MAX: Final = 100


class TextFrames(ASGIWebSocketAdapter):
    """Sends text frames (orjson's bytes would be binary ones)."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Send a message, or one for each of several results, when the client has taken those before it."""
        payload = message.get("payload")
        results = payload.get("data") if isinstance(payload, dict) else None
        if isinstance(results, Results):
            await self._send_all(message["id"], results)
            return
        with _disconnecting():
            await self.ws.send_text(orjson.dumps(message).decode())

    async def _send_all(self, operation: object, results: Results) -> None:
        head = b'{"id":%b,"type":"next","payload":' % orjson.dumps(operation)
        async with contextlib.aclosing(results.pieces()) as pieces:
            async for parts in pieces:
                sent = 0
                while sent < len(parts):
                    # Written as they are sent: what waits for a client is no more than the connection keeps.
                    with _disconnecting():
                        sent += await self._send_some(head + part.json() + b"}" for part in parts[sent:])
                    results.standing.move(parts[sent - 1].place)

    async def _send_some(self, texts: Iterator[bytes]) -> int:
        connection = self._connection
        if connection is not None:
            return await connection.send_texts(texts)
        await self.ws.send_text(next(texts).decode())
        return 1

    async def close(self, code: int, reason: str) -> None:
        """Close; what cannot be said in a close frame is cut off."""
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # closed already
            await super().close(code, shortened(reason))

    def say_when_too_slow(self, reason: Callable[[], str]) -> None:
        """Have the client told this when it is given up because it takes nothing."""
        connection = self._connection
        if connection is not None:
            connection.farewell = reason

    @property
    def _connection(self) -> SocketConnection | None:
        """There is none under another server than ours."""
        return getattr(self.ws.state, "connection", None)


@contextlib.contextmanager
def _disconnecting() -> Iterator[None]:
    """Say of whatever a closed socket raises that the client is gone; RuntimeError is Starlette's word for it."""
    try:
        yield
    except (WebSocketDisconnect, ClientDisconnected, RuntimeError) as error:
        raise WebSocketDisconnected from error


def shortened(reason: str) -> str:
    """Return what of a reason fits into a close frame."""
    return reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")


class _View(Protocol):
    """What a socket's operations need of the view that they came through."""

    documents: Documents
    sessions: Sessions


class Operations(BaseGraphQLTransportWSHandler[Context, None]):
    """Strawberry's handler of a socket, which takes every message for the well-formed one of its type.

    It ends with the token that it was opened with, and says to a client that is too slow from where to go on.
    """

    _is_watched = False

    async def handle(self) -> None:
        """Handle all messages of the socket."""
        cast("TextFrames", self.websocket).say_when_too_slow(self._farewell)
        with contextlib.ExitStack() as self._session:
            await super().handle()

    async def handle_connection_init(self, message: ConnectionInitMessage) -> None:
        """Acknowledge the client, and from then on look after its token."""
        await super().handle_connection_init(message)
        principal = self.context.principal
        if principal is not None and not self._is_watched:
            self._is_watched = True
            self._session.enter_context(cast("_View", self.view).sessions.open(principal, self._end))

    def _end(self, why: str) -> None:
        self._ending = asyncio.create_task(self.websocket.close(FORBIDDEN, f"Forbidden: {why}"))

    def _farewell(self) -> str:
        cursor = resume_from(self.context.places)
        said = "too slow" if cursor is None else f"too slow; after={encode_feed(cursor)}"
        return said if len(said) <= REASON_BYTES_MAX else "too slow"

    async def handle_task_exception(self, error: Exception) -> None:
        """Log a bug; that the client went away is none."""
        if not isinstance(error, WebSocketDisconnected):
            await super().handle_task_exception(error)

    async def handle_message(self, message: Message) -> None:
        """Handle a message; one that is not of the protocol closes the socket, as the protocol says."""
        wrong = _malformed(message)
        if wrong:
            await self.handle_invalid_message(wrong)
        else:
            await super().handle_message(message)

    async def handle_subscribe(self, message: SubscribeMessage) -> None:
        """Start an operation, unless the socket has enough of them or the payload means no document."""
        if not self.connection_acknowledged or message["id"] in self.operations:
            await super().handle_subscribe(message)  # which closes the socket
            return
        if len(self.operations) >= SUBSCRIPTIONS_PER_SOCKET_MAX:
            said = f"this socket runs {SUBSCRIPTIONS_PER_SOCKET_MAX} operations, the most it may"
            await self._refuse(message["id"], Code.RATE_LIMITED, said)
            return
        payload = message["payload"]
        try:
            payload["query"] = cast("_View", self.view).documents.text(payload)
        except DocumentRefused as refused:
            await self._refuse(message["id"], refused.code, refused.message)
            return
        await super().handle_subscribe(message)

    async def _refuse(self, operation: str, code: str, message: str) -> None:
        error = GraphQLError(message, extensions={"code": code, "requestId": self.context.request_id})
        await self.send_message({"id": operation, "type": "error", "payload": [error.formatted]})


def _malformed(message: object) -> str | None:
    """Say what is wrong with a message of a client; https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md."""
    match message:
        case {"type": "subscribe", "id": str(), "payload": dict(payload)}:
            return malformed_request(payload)
        case {"type": "subscribe"}:
            return "a subscribe message has a string id and a payload, an object"
        case {"type": "connection_init", "payload": dict(payload)}:
            return _wrong_freshness(payload)
        case {"type": "complete", "id": id_} if not isinstance(id_, str):
            return "a complete message has a string id"
        case {"type": str()}:
            return None
        case _:
            return "a message is an object with a string type"


def _wrong_freshness(payload: Mapping[str, object]) -> str | None:
    try:
        asked_freshness(payload)
    except InvalidInput as refusal:
        return refusal.message
    return None
