"""Request bodies are bounded before and after decompression."""

import gzip
import json

import httpx
import pytest

from tests.support.server import RunningServer
from web.body_limit import BodyLimit

QUERY = json.dumps({"query": "{ viewer { role } }"}).encode()


async def _post(server: RunningServer, content: bytes, **headers: str) -> httpx.Response:
    sent = {"Authorization": f"Bearer {server.operator.token}", "Content-Type": "application/json", **headers}
    return await server.operator.http.post("/graphql", content=content, headers=sent)


async def test_a_gzip_body_is_taken(server: RunningServer) -> None:
    answer = await _post(server, gzip.compress(QUERY), **{"Content-Encoding": "gzip"})
    assert answer.json() == {"data": {"viewer": {"role": "operator"}}}


@pytest.mark.parametrize(
    ("content", "encoding", "status", "said"),
    [
        (QUERY, "gzip", 400, "not gzip"),
        (gzip.compress(QUERY, mtime=0)[:-9], "gzip", 400, "ends too early"),
        (QUERY, "br", 415, "'br'"),
    ],
)
async def test_a_body_that_is_not_what_its_header_says_is_refused(
    server: RunningServer, content: bytes, encoding: str, status: int, said: str
) -> None:
    answer = await _post(server, content, **{"Content-Encoding": encoding})
    assert answer.status_code == status
    assert said in answer.json()["errors"][0]["message"]
    assert answer.json()["errors"][0]["extensions"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize(
    ("content", "encoding"), [(b"x" * 2000, "identity"), (gzip.compress(b"x" * 5000, mtime=0), "gzip")]
)
async def test_a_body_beyond_the_bounds_is_refused_before_it_is_parsed(content: bytes, encoding: str) -> None:
    async def never(_scope: object, _receive: object, _send: object) -> None:
        pytest.fail("the body reached the application")

    transport = httpx.ASGITransport(BodyLimit(never, body_bytes_max=1000, decompressed_bytes_max=4000))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        answer = await http.post("/", content=content, headers={"Content-Encoding": encoding})
    assert answer.status_code == 413
