"""The thin front of `/graphql`: compiled reads and agents' heartbeats are answered here, all else by Strawberry's view.

It authenticates, finds the document, authorizes, counts and tells errors by the functions that the view uses, and does
nothing else: no extension, no executor, no field in Python.
"""

import asyncio
import math
import time
from collections.abc import Iterable
from typing import Any, Final

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from db.connections import TRANSIENT
from db.identifiers import new_id
from domain.access import Permission
from domain.errors import RateLimited, Refusal
from domain.freshness import ANY, Freshness
from resolvers.context import Context, Entrance, Services
from schema.answers import Answer
from schema.compiled import CompiledOperations, LeftToTheGraph
from web import heartbeats
from web.authentication import Authentication
from web.documents import DocumentRefused, Documents
from web.freshness import asked_freshness

GRAPHQL_PATH: Final = "/graphql"
SEND_SECONDS_MAX: Final = 15
_JSON: Final = b"application/json"
_OURS: Final = b"fleetgraph-"
_STREAMED: Final = (b"text/event-stream", b"multipart/mixed")


class Front:
    """Answers what it can; the rest goes on as it came."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        operations: CompiledOperations,
        services: Services,
        authentication: Authentication,
        documents: Documents,
    ) -> None:
        self._app = app
        self._operations = operations
        self._services = services
        self._authentication = authentication
        self._documents = documents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; bodies are bounded and whole already (`web.body_limit`)."""
        if not (self._services.compiled_reads and _may_be_ours(scope)):
            await self._app(scope, receive, send)
            return
        message = await receive()
        started = time.perf_counter()
        try:
            context, name, answer = await self._answer(scope, message)
        except (LeftToTheGraph, DocumentRefused, Refusal, orjson.JSONDecodeError):
            # Whatever is wrong with the request, the view says it, in the form that its client understands.
            await self._app(scope, _again(message, receive), send)
            return
        try:
            await _send(send, answer, context.request_id)
        finally:
            if answer.rest is not None:
                await answer.rest.aclose()
                await context.end()
        seconds = time.perf_counter() - started
        self._services.meter.operation(Entrance.FRONT, name, seconds, failed=answer.failed)

    async def _answer(self, scope: Scope, message: Message) -> tuple[Context, str | None, Answer]:
        """Execute a request, and say the operation's name; the context that comes with the answer is to be ended."""
        try:
            principal = await self._authentication.principal(_header(scope, b"authorization"))
        except TRANSIENT as error:
            raise LeftToTheGraph("the database is away") from error
        whole = not message.get("more_body")
        reports = heartbeats.given_reports(message["body"]) if whole else None
        if reports is not None:
            context = Context(self._services, new_id("req"), principal, freshness=_freshness(scope))
            principal.require(Permission.REPORT)  # who may not is told by the view
            return context, heartbeats.NAME, await heartbeats.answer(context, reports)
        if whole and heartbeats.is_hello(message["body"]):
            return _refused_hello(Context(self._services, new_id("req"), principal, freshness=_freshness(scope)))
        request = orjson.loads(message["body"]) if whole else None
        text, variables, name = _parts(request, self._documents)
        operation = self._operations.find(text, name)
        context = Context(self._services, new_id("req"), principal, freshness=_freshness(scope)).query()
        try:
            answer = await self._operations.execute(operation, variables, context)
        except BaseException:
            await context.end()
            raise
        if answer.rest is None:
            await context.end()  # nothing is held while the client takes its time
        return context, operation.name, answer


def _refused_hello(context: Context) -> tuple[Context, str | None, Answer]:
    """Answer a hello that is not let in; raises LeftToTheGraph for one that may be."""
    context.require(Permission.REPORT)
    try:
        context.shed_hello()
    except RateLimited as refusal:
        return context, heartbeats.HELLO_NAME, heartbeats.hello_refused(context, refusal)
    raise LeftToTheGraph("a hello")


def _parts(request: Any, documents: Documents) -> tuple[str, dict[str, Any], str | None]:  # noqa: ANN401 - any JSON
    match request:
        case dict():
            variables, name = request.get("variables"), request.get("operationName")
            if isinstance(variables, dict | None) and isinstance(name, str | None):
                return documents.text(request), variables or {}, name
    raise LeftToTheGraph("not a request")


def _may_be_ours(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != GRAPHQL_PATH:
        return False
    content_type = accept = b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value
        elif name == b"accept":
            accept = value
    return content_type.startswith(_JSON) and not any(kind in accept for kind in _STREAMED)


def _header(scope: Scope, wanted: bytes) -> str | None:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return next((value.decode("latin-1") for name, value in headers if name == wanted), None)


def _freshness(scope: Scope) -> Freshness:
    asked = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name.startswith(_OURS)
    }
    return asked_freshness(asked) if asked else ANY


async def _send(send: Send, answer: Answer, request_id: str) -> None:
    body = answer.text.encode()
    headers = [(b"content-type", _JSON), (b"x-request-id", request_id.encode())]
    status = 200
    if answer.retry_after_seconds is not None:
        status = 429
        headers.append((b"retry-after", str(math.ceil(answer.retry_after_seconds)).encode()))
    if answer.rest is None:
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if answer.rest is None:
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.body", "body": body, "more_body": True})
    async for piece in answer.rest:
        # The rows that follow hold a connection and its snapshot: a client that does not read is not waited for.
        async with asyncio.timeout(SEND_SECONDS_MAX):
            await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _again(message: Message, receive: Receive) -> Receive:
    """Return a channel that gives the message once more, then whatever follows."""
    given = [message]

    async def replay() -> Message:
        return given.pop() if given else await receive()

    return replay
