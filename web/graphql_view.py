"""GraphQL over HTTP and WebSocket: authentication, one context per request or socket, bytes on the wire."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import orjson
import strawberry
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket
from strawberry.asgi import ASGIWebSocketAdapter, GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.http.exceptions import WebSocketDisconnected
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL

from db.identifiers import new_id
from domain.access import Principal
from domain.errors import Refusal
from resolvers.context import Context, Services
from web.authentication import authenticate

SEND_SECONDS_MAX: Final = 30
SUBSCRIPTIONS_PER_SOCKET_MAX: Final = 100
INIT_SECONDS_MAX: Final = 10


class TextFrames(ASGIWebSocketAdapter):
    """Sends text frames (orjson's bytes would be binary ones), and gives up on a client that reads nothing."""

    async def send_json(self, message: Mapping[str, object]) -> None:
        """Send one message."""
        try:
            async with asyncio.timeout(SEND_SECONDS_MAX):
                await self.ws.send_text(orjson.dumps(message).decode())
        except (TimeoutError, RuntimeError) as error:  # Starlette raises RuntimeError when the socket is closed
            raise WebSocketDisconnected from error


class GraphQLView(GraphQL[Context, None]):
    """Strawberry's ASGI view with our authentication."""

    websocket_adapter_class = TextFrames

    def __init__(self, schema: strawberry.Schema, services: Services, allowed_origins: tuple[str, ...]) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            allow_queries_via_get=False,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL, GRAPHQL_SSE_PROTOCOL),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS_MAX),
            max_subscriptions_per_connection=SUBSCRIPTIONS_PER_SOCKET_MAX,
            allowed_origins=allowed_origins,
        )
        self._services = services

    async def run(self, request: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Strawberry's signature
        """Answer a request; one without a good token gets 401 and an error with its code."""
        try:
            return await super().run(request, *args, **kwargs)
        except Refusal as refusal:
            error = {"message": refusal.message, "extensions": {"code": refusal.code.value}}
            return JSONResponse(
                {"data": None, "errors": [error]}, 401, headers={"WWW-Authenticate": 'Bearer realm="fleetgraph"'}
            )

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """Make the context: a request authenticates at once, a socket with its connection_init."""
        context = Context(self._services, new_id("req"))
        if isinstance(request, Request) and isinstance(response, Response):
            response.headers["X-Request-Id"] = context.request_id
            context.principal = await self._principal(request.headers.get("authorization"))
        return context

    async def on_ws_connect(self, context: Context) -> Any:  # noqa: ANN401 - Strawberry's signature
        """Authenticate a socket by `authorization` of its connection_init."""
        given = (context.connection_params or {}).get("authorization")
        try:
            context.principal = await self._principal(given if isinstance(given, str) else None)
        except Refusal as refusal:
            raise ConnectionRejectionError from refusal
        return {"requestId": context.request_id}

    async def _principal(self, header: str | None) -> Principal:
        return await authenticate(self._services.database, header, self._services.now())

    def encode_json(self, data: object) -> bytes:
        """Encode a response."""
        return orjson.dumps(data)

    def decode_json(self, data: str | bytes) -> object:
        """Decode a request."""
        return orjson.loads(data)
