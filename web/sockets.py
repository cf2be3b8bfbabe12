"""GraphQL over WebSocket: `graphql-transport-ws`, with what a client may send and how much waits for it bounded."""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol, cast

import orjson
from graphql import GraphQLError
from strawberry.asgi import ASGIWebSocketAdapter
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from strawberry.subscriptions.protocols.graphql_transport_ws.types import Message, SubscribeMessage

from domain.errors import Code, InvalidInput
from resolvers.context import Context
from web.documents import DocumentRefused, Documents, malformed_request
from web.freshness import asked_freshness

SEND_SECONDS_MAX: Final = 30
SUBSCRIPTIONS_PER_SOCKET_MAX: Final = 100


class TextFrames(ASGIWebSocketAdapter):
    """Sends text frames (orjson's bytes would be binary ones), and gives up on a client that reads nothing."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        try:
            async with asyncio.timeout(SEND_SECONDS_MAX):
                await self.ws.send_text(orjson.dumps(message).decode())
        except (TimeoutError, RuntimeError) as error:  # Starlette raises RuntimeError when the socket is closed
            raise WebSocketDisconnected from error


class _View(Protocol):
    """What a socket's operations need of the view that they came through."""

    @property
    def documents(self) -> Documents: ...


class Operations(BaseGraphQLTransportWSHandler[Context, None]):
    """Strawberry's handler of a socket, which takes every message for the well-formed one of its type."""

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
