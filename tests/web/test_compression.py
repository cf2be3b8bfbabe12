"""Responses are compressed for clients that ask, without making anybody wait."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message

from tests.support.server import RunningServer
from web.compression import COMPRESSED_FROM_BYTES, COMPRESSION

Served = tuple[RunningServer, str]
Page = Callable[[Request], Awaitable[Response]]
GZIP_WINDOW = 16 + zlib.MAX_WBITS
SUBSCRIPTION = {"query": "subscription { events { cursor } }"}
LARGE = {"query": "{ __schema { types { name description } } }"}
SMALL = {"query": "{ __typename }"}


@asynccontextmanager
async def _client(served: Served, encoding: str) -> AsyncIterator[httpx.AsyncClient]:
    server, address = served
    headers = {"Authorization": f"Bearer {server.operator.token}", "Accept-Encoding": encoding}
    async with httpx.AsyncClient(base_url=address, headers=headers) as http:
        yield http


async def test_a_page_is_compressed_for_a_client_that_takes_gzip(served: Served) -> None:
    async with _client(served, "gzip") as http, http.stream("POST", "/graphql", json=LARGE) as answer:
        sent = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert int(answer.headers["Content-Length"]) == len(sent)
    plain = gzip.decompress(sent)
    assert len(sent) < len(plain) / 2
    assert json.loads(plain)["data"]["__schema"]["types"]


async def test_a_client_that_does_not_ask_gets_the_same_answer_as_it_is(served: Served) -> None:
    async with _client(served, "gzip") as http:
        compressed = await http.post("/graphql", json=LARGE)
    async with _client(served, "identity") as http:
        plain = await http.post("/graphql", json=LARGE)
    assert "Content-Encoding" not in plain.headers
    # A cache in between must not give this one to a client that takes gzip, nor the other way round.
    assert plain.headers["Vary"] == "Accept-Encoding"
    assert plain.content == compressed.content


async def test_a_small_answer_stays_as_it_is(served: Served) -> None:
    async with _client(served, "gzip") as http:
        answer = await http.post("/graphql", json=SMALL)
    assert len(answer.content) < COMPRESSED_FROM_BYTES
    assert "Content-Encoding" not in answer.headers


async def test_the_console_is_compressed(served: Served) -> None:
    async with _client(served, "gzip") as http:
        answer = await http.get("/static/console.css")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"


async def test_server_sent_events_are_never_compressed(served: Served) -> None:
    async with (
        _client(served, "gzip") as http,
        http.stream("POST", "/graphql", json=SUBSCRIPTION, headers={"Accept": "text/event-stream"}) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert "Content-Encoding" not in answer.headers


async def test_a_streamed_body_is_compressed_chunk_by_chunk_without_waiting_for_its_end() -> None:
    go_on = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"data": [1'
        await go_on.wait()
        yield b", 2]}"

    async def page(_request: Request) -> Response:
        return StreamingResponse(chunks(), media_type="application/json")

    sent: asyncio.Queue[Message] = asyncio.Queue()
    running = asyncio.create_task(_asked(page, sent))
    async with asyncio.timeout(10):
        start = await sent.get()
        assert (b"content-encoding", b"gzip") in start["headers"]
        assert (b"vary", b"Accept-Encoding") in start["headers"]
        stream = zlib.decompressobj(GZIP_WINDOW)
        assert stream.decompress((await sent.get())["body"]) == b'{"data": [1'
        go_on.set()
        assert stream.decompress((await sent.get())["body"]) == b", 2]}"
        while not stream.eof:
            assert stream.decompress((await sent.get())["body"]) == b""
        await running


@pytest.mark.parametrize(
    ("header", "value"),
    [("Content-Encoding", "br"), ("Content-Type", "image/png"), ("Content-Type", "application/gzip")],
)
async def test_what_is_compressed_already_stays_as_it_is(header: str, value: str) -> None:
    body = b"x" * 2 * COMPRESSED_FROM_BYTES

    async def page(_request: Request) -> Response:
        return Response(body, headers={header: value})

    sent: asyncio.Queue[Message] = asyncio.Queue()
    await _asked(page, sent)
    assert (b"content-encoding", b"gzip") not in (await sent.get())["headers"]
    assert (await sent.get())["body"] == body


async def _asked(page: Page, sent: "asyncio.Queue[Message]") -> None:
    """Ask an application of one page for it, as a client that takes gzip; what it sends goes to `sent`."""
    app = Starlette(routes=[Route("/", page)], middleware=[COMPRESSION])
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [(b"accept-encoding", b"gzip")],
    }
    done = asyncio.Event()

    async def receive() -> Message:
        await done.wait()
        return {"type": "http.disconnect"}

    await app(scope, receive, sent.put)
