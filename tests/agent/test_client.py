import asyncio
import gzip
import json
import socket
import ssl

import httpx
import pytest

from agent.client import Client, Connection, connect
from agent.failures import NotFleetgraph, Refused, Unreachable, describe_transport_error
from agent.wire import HashReport, Hello, SectionContent, SectionHash, Sections
from domain.digest import section_sha256
from domain.errors import Code
from tests.agent.fake_server import TOKEN, FakeServer

CONNECTION = Connection("http://fleet.test", TOKEN)


def answering(status: int, body: bytes, headers: dict[str, str] | None = None) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(status, content=body, headers=headers))


async def say_hello(transport: httpx.MockTransport) -> None:
    async with connect(CONNECTION, transport) as client:
        await client.hello(Hello(identity_key="key"))


async def test_every_question_is_about_what_was_reported_before() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"data": {}})

    async with connect(CONNECTION, httpx.MockTransport(answer)) as client:
        await client.statuses([])
    assert [request.headers["fleetgraph-consistency"] for request in asked] == ["strong"]


async def test_hello_hashes_and_sections_reach_the_server() -> None:
    server = FakeServer()
    content = b'{"vendor":"Example"}'
    report = (SectionHash(name="system", sha256=section_sha256(content)),)
    async with connect(CONNECTION, server.transport()) as client:
        greeting = await client.hello(Hello(identity_key="key", hostname="one"))
        (asked,) = await client.record_hashes([HashReport(node_id=greeting.node.id, hashes=report)])
        assert asked.request_sections == ("system",)
        section = SectionContent(name="system", sha256=report[0].sha256, content=content)
        (stored,) = await client.ingest([Sections(node_id=greeting.node.id, sections=(section,))])
        assert stored.stored == ("system",)
        (status,) = await client.statuses([greeting.node.id])
    assert server.only.contents == {"system": content}
    assert status.latest_snapshot is not None
    assert status.latest_snapshot.digest == status.inventory_status.applied_digest


async def test_what_a_hello_leaves_unset_is_not_on_the_wire() -> None:
    server = FakeServer()
    await say_hello(server.transport())
    assert server.only.hello == {"identityKey": "key"}


async def test_large_requests_are_compressed() -> None:
    seen: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(500)

    async with connect(CONNECTION, httpx.MockTransport(keep)) as client:
        section = SectionContent(name="images", sha256="0" * 64, content=b"x" * 9000)
        with pytest.raises(Unreachable):
            await client.ingest([Sections(node_id="node_1", sections=(section,))])
    assert seen[0].headers["content-encoding"] == "gzip"
    assert len(seen[0].content) < 9000
    assert json.loads(gzip.decompress(seen[0].content))["variables"]["entries"][0]["nodeId"] == "node_1"


async def test_a_wrong_token_is_told_in_one_line_without_the_token() -> None:
    server = FakeServer()
    async with connect(Connection("http://fleet.test", "wrong-token"), server.transport()) as client:
        with pytest.raises(Refused, match="does not take this token") as caught:
            await client.hello(Hello(identity_key="key"))
    assert caught.value.code is Code.UNAUTHENTICATED
    assert "wrong-token" not in str(caught.value) + repr(Connection("http://fleet.test", "wrong-token"))


async def test_a_server_that_restarts_may_be_asked_again() -> None:
    with pytest.raises(Unreachable, match="not ready: HTTP 503"):
        await say_hello(answering(503, b"starting"))


async def test_a_fault_of_the_server_may_pass_and_a_refusal_does_not() -> None:
    def error(code: str) -> bytes:
        return json.dumps({"data": None, "errors": [{"message": "no", "extensions": {"code": code}}]}).encode()

    with pytest.raises(Refused) as fault:
        await say_hello(answering(200, error("INTERNAL")))
    with pytest.raises(Refused) as refusal:
        await say_hello(answering(200, error("INVALID_INPUT")))
    assert (fault.value.transient, refusal.value.transient) == (True, False)


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>welcome</html>"), (404, b"not found"), (200, b'{"data": {"hello": {"x": 1}}}')]
)
async def test_what_is_no_fleetgraph_server_is_said_to_be_none(status: int, body: bytes) -> None:
    with pytest.raises(NotFleetgraph, match=r"fleet\.test/graphql"):
        await say_hello(answering(status, body))


async def test_a_redirect_is_not_followed_with_the_token() -> None:
    with pytest.raises(NotFleetgraph, match=r"redirects to https://other\.test/graphql"):
        await say_hello(answering(307, b"", {"location": "https://other.test/graphql"}))


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.client.ANSWER_BYTES_MAX", 1000)
    with pytest.raises(NotFleetgraph, match="more than 1000 bytes"):
        await say_hello(answering(200, b" " * 1001))


async def test_a_server_that_does_not_answer_in_time_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.client.REQUEST_SECONDS_MAX", 0.05)

    async def hang(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(Unreachable, match="no answer in time"):
        await say_hello(httpx.MockTransport(hang))


async def test_a_closed_port_is_told_in_one_line() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with connect(Connection(url, TOKEN)) as client:
            with pytest.raises(Unreachable, match=f"cannot reach {url}: connection refused"):
                await client.hello(Hello(identity_key="key"))


def test_an_untrusted_certificate_says_what_to_set() -> None:
    certificate = ssl.SSLCertVerificationError(1, "certificate verify failed")
    certificate.verify_message = "self-signed certificate"
    error = httpx.ConnectError("tls")
    error.__cause__ = certificate
    said = describe_transport_error("https://fleet.test", error)
    assert said.startswith("no trusted TLS connection to https://fleet.test: self-signed certificate")
    assert "SSL_CERT_FILE" in said


def test_failures_in_groups_and_circles_are_found_and_end() -> None:
    refused = ConnectionRefusedError(111, "refused")
    group = OSError("all connection attempts failed")
    group.__cause__ = ExceptionGroup("attempts", [refused])
    refused.__context__ = group
    assert "connection refused" in describe_transport_error("http://fleet.test", group)


EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


async def followed(transport: httpx.AsyncBaseTransport) -> int:
    async with connect(CONNECTION, transport) as client:
        return len([each async for each in client.follow_commands("node_1")])


async def test_a_stream_tells_of_each_command_until_it_ends() -> None:
    told = b'event: next\ndata: {"data": {"nodeCommands": {"id": "cmd_1"}}}\n\n'
    assert await followed(answering(200, told + b":\n\n" + told + b"event: complete\ndata: \n\n", EVENTS)) == 2


async def test_a_stream_that_is_refused_says_why_and_one_that_is_long_quiet_ends() -> None:
    error = b'{"errors": [{"message": "no node", "extensions": {"code": "NOT_FOUND"}}]}'
    for transport in (answering(200, error), answering(200, b"event: next\ndata: " + error + b"\n\n", EVENTS)):
        with pytest.raises(Refused, match="no node"):
            await followed(transport)
    with pytest.raises(Unreachable):
        await followed(answering(503, b"<html>not now</html>"))
    with pytest.raises(NotFleetgraph, match="does not stream"):
        await followed(answering(200, b'{"data": {}}'))

    class Quiet(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ReadTimeout("quiet", request=request)

    assert await followed(Quiet()) == 0


async def test_slots_that_do_not_match_their_entries_are_not_trusted() -> None:
    body = json.dumps({"data": {"recordInventoryHashes": []}}).encode()
    async with connect(CONNECTION, answering(200, body)) as client:
        assert isinstance(client, Client)
        with pytest.raises(NotFleetgraph, match="0 slots"):
            await client.record_hashes([HashReport(node_id="node_1", hashes=())])
