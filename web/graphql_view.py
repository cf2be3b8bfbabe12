"""GraphQL over HTTP and, by `web.sockets`, WebSocket: authentication, one context per request or socket."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final, cast

import orjson
import strawberry
import structlog
from cross_web import AsyncHTTPRequestAdapter, HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket
from strawberry.asgi import GraphQL
from strawberry.exceptions import ConnectionRejectionError
from strawberry.http import GraphQLHTTPResponse, GraphQLRequestData, GraphQLRequestProtocol
from strawberry.http.parse_content_type import parse_content_type
from strawberry.http.streaming import HTTPStreamTransport
from strawberry.subscriptions import GRAPHQL_SSE_PROTOCOL, GRAPHQL_TRANSPORT_WS_PROTOCOL
from strawberry.types import ExecutionResult, SubscriptionExecutionResult

from db.connections import TRANSIENT
from db.identifiers import new_id
from domain.access import Principal
from domain.cursor import encode_feed
from domain.errors import Code, InvalidInput, Refusal
from resolvers.context import Context, Services
from resolvers.places import resume_from
from schema.batches import Results
from web.authentication import Authentication
from web.documents import PERSISTED_QUERY_NOT_FOUND, DocumentRefused, Documents, malformed_request
from web.event_streams import EventStream, EventStreamResponse, kept_open
from web.freshness import asked_freshness
from web.sessions import Sessions
from web.sockets import SUBSCRIPTIONS_PER_SOCKET_MAX, Operations, TextFrames

_log = structlog.get_logger("graphql")
INIT_SECONDS_MAX: Final = 10


class GraphQLView(GraphQL[Context, None]):
    """Strawberry's ASGI view with our authentication."""

    websocket_adapter_class = TextFrames
    graphql_transport_ws_handler_class = Operations
    stream_transport_classes_by_protocol = MappingProxyType({GRAPHQL_SSE_PROTOCOL: EventStream})

    def __init__(
        self,
        schema: strawberry.Schema,
        services: Services,
        authentication: Authentication,
        documents: Documents,
        allowed_origins: tuple[str, ...],
    ) -> None:
        super().__init__(
            schema,
            graphql_ide=None,
            allow_queries_via_get=False,
            subscription_protocols=(GRAPHQL_TRANSPORT_WS_PROTOCOL, GRAPHQL_SSE_PROTOCOL),
            connection_init_wait_timeout=timedelta(seconds=INIT_SECONDS_MAX),
            max_subscriptions_per_connection=SUBSCRIPTIONS_PER_SOCKET_MAX,
            allowed_origins=allowed_origins,
        )
        self.documents = documents
        self.sessions = Sessions(services.database, services.now)
        self._authentication = authentication
        self._services = services

    async def run(self, request: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Strawberry's signature
        """Answer a request; one that cannot be executed gets its status and a GraphQL error with its code."""
        try:
            answer = await super().run(request, *args, **kwargs)
        except InvalidInput as refusal:
            return _error(request, 400, refusal.code, refusal.message, {})
        except Refusal as refusal:
            headers = {"WWW-Authenticate": 'Bearer realm="fleetgraph"'}
            return _error(request, 401, refusal.code, refusal.message, headers)
        except TRANSIENT as error:
            _log.warning("the database is away", error=repr(error))
            message = "the database is away for the moment; try again"
            return _error(request, 503, Code.UNAVAILABLE, message, {"Retry-After": "1"})
        except DocumentRefused as refused:
            return self._document_refused(request, refused)
        except HTTPException as refusal:
            return _error(request, refusal.status_code, Code.INVALID_INPUT, refusal.reason, {})
        retry_after = getattr(request.state, "retry_after_seconds", None)
        if retry_after is not None and isinstance(answer, Response):
            answer.status_code = 429
            answer.headers["Retry-After"] = str(math.ceil(retry_after))
        return answer

    async def parse_http_body(self, request: AsyncHTTPRequestAdapter) -> GraphQLRequestData | list[GraphQLRequestData]:
        """Read what to execute, after `get_context` has authenticated; Strawberry's own reads no `documentId`."""
        transport = self._get_stream_transport_from_headers(request.headers)
        if request.method == "GET":
            if transport is None:  # said before a document is looked for: a client would not find out until it is known
                raise HTTPException(400, "queries and mutations are sent by POST, and GET is for event streams")
            given = self.parse_query_params(request.query_params)
        elif parse_content_type(request.content_type or "")[0] == "application/json":
            given = self.parse_json(await request.get_body())
        else:
            raise HTTPException(400, "the content type must be application/json")
        wrong = malformed_request(given)
        if wrong:
            raise HTTPException(400, wrong)
        text = self.documents.text(given)
        protocol: GraphQLRequestProtocol = transport.protocol if transport else "http"
        return GraphQLRequestData(
            text, given.get("variables"), given.get("operationName"), given.get("extensions"), protocol
        )

    def _document_refused(self, request: Request, refused: DocumentRefused) -> Response:
        # Apollo's clients and urql look for their code in an answer that is otherwise a good one.
        status = 200 if refused.code == PERSISTED_QUERY_NOT_FOUND else 400
        transport = self._get_stream_transport_from_headers(request.headers)
        if transport is None:
            return _error(request, status, refused.code, refused.message, {})
        answer, headers = _refusal(request, refused.code, refused.message)
        events = transport.encode_next(answer, self.encode_json_string) + transport.encode_complete()
        return Response(events, headers={**transport.headers, **headers})

    def parse_json(self, data: str | bytes) -> dict[str, Any]:
        """Decode a body: an object, because batches are not taken."""
        decoded = super().parse_json(data)
        if not isinstance(decoded, dict):
            raise HTTPException(400, "the request must be a JSON object with a `query`")
        return decoded

    def should_render_graphql_ide(self, request: object) -> bool:  # noqa: ARG002 - Strawberry's signature
        """Render none: GraphiQL has a page of its own."""
        return False

    def _stream_result(
        self, request: Request, result: SubscriptionExecutionResult, transport: HTTPStreamTransport
    ) -> Callable[[], AsyncGenerator[str, None]]:
        """Encode a stream of results; Strawberry's own way has two tasks and a queue, which outlive who has left."""
        results = cast("AsyncGenerator[Any, None]", result)

        async def stream() -> AsyncGenerator[str, None]:
            pending: list[Any] = []
            async with aclosing(results):
                async for value in results:
                    if isinstance(value.data, Results):
                        async with aclosing(cast("EventStream", transport).encode_all(value.data)) as pieces:
                            async for piece in pieces:
                                yield piece
                    else:
                        response, pending = await self._process_stream_result(request, value, pending)
                        yield transport.encode_next(response, self.encode_json_string)
            yield transport.encode_complete()

        return stream

    async def create_streaming_response(
        self,
        request: Request | WebSocket,
        stream: Callable[[], AsyncIterator[str]],
        sub_response: Response,
        headers: Mapping[str, str],
    ) -> Response:
        """Stream server-sent events until the client leaves, the server stops or the token does not hold any more."""

        async def streamed() -> AsyncGenerator[str, None]:
            ended = asyncio.get_running_loop().create_future()
            source = cast("AsyncGenerator[str, None]", stream())
            context: Context = request.state.context
            said = partial(self._ended, request)
            events = kept_open(source, self._services.stopping, ended, said, lambda: _place(context))
            with self.sessions.open(cast("Principal", context.principal), ended.set_result):
                async with aclosing(events):
                    async for text in events:
                        yield text

        return EventStreamResponse(streamed(), headers={**sub_response.headers, **headers})

    def _ended(self, request: Request | WebSocket, why: str) -> str:
        """Return the last events of a stream whose token does not hold any more."""
        answer, _ = _refusal(request, Code.UNAUTHENTICATED, why)
        stream = EventStream()
        return stream.encode_next(answer, self.encode_json_string) + stream.encode_complete()

    async def process_result(self, request: Request, result: ExecutionResult) -> GraphQLHTTPResponse:
        """Return a result as it is sent, and note where all of it was refused for now."""
        errors = result.errors or []
        waits = [wait for each in errors if (wait := (each.extensions or {}).get("retryAfterSeconds")) is not None]
        if result.data is None and waits and len(waits) == len(errors):
            request.state.retry_after_seconds = max(waits)
        return await super().process_result(request, result)

    async def get_context(self, request: Request | WebSocket, response: Response | WebSocket) -> Context:
        """Make the context: a request authenticates at once, a socket with its connection_init."""
        context = Context(self._services, new_id("req"))
        request.state.context = context
        request.state.request_id = context.request_id
        if isinstance(request, Request) and isinstance(response, Response):
            response.headers["X-Request-Id"] = context.request_id
            context.principal = await self._requester(request)
            context.freshness = asked_freshness(request.headers)
            context.last_event_id = request.headers.get("last-event-id") or None
        return context

    async def on_ws_connect(self, context: Context) -> Any:  # noqa: ANN401 - Strawberry's signature
        """Authenticate a socket by `authorization` of its connection_init."""
        asked = context.connection_params or {}
        context.freshness = asked_freshness(asked)
        given = asked.get("authorization")
        try:
            context.principal = await self._principal(given if isinstance(given, str) else None)
        except Refusal as refusal:
            raise ConnectionRejectionError from refusal
        return {"requestId": context.request_id}

    async def _requester(self, request: Request) -> Principal:
        ticket = request.query_params.get("ticket") if request.method == "GET" else None
        if ticket is not None:
            return await self._authentication.of_ticket(ticket)
        return await self._principal(request.headers.get("authorization"))

    async def _principal(self, header: str | None) -> Principal:
        return await self._authentication.principal(header)

    def encode_json(self, data: object) -> bytes:
        """Encode a response."""
        return orjson.dumps(data)

    def decode_json(self, data: str | bytes) -> object:
        """Decode a request."""
        return orjson.loads(data)


def _place(context: Context) -> str | None:
    cursor = resume_from(context.places)
    return None if cursor is None else encode_feed(cursor)


def _error(request: Request, status: int, code: str, message: str, headers: Mapping[str, str]) -> Response:
    answer, named = _refusal(request, code, message)
    return JSONResponse(answer, status, headers={**headers, **named})


def _refusal(request: Request | WebSocket, code: str, message: str) -> tuple[GraphQLHTTPResponse, dict[str, str]]:
    """Return an answer that is one error, and the header that names the request."""
    request_id = getattr(request.state, "request_id", None)
    error = {"message": message, "extensions": {"code": code, "requestId": request_id}}
    return {"data": None, "errors": [error]}, {"X-Request-Id": request_id} if request_id else {}
