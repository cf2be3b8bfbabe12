"""The agent's line to the server: GraphQL over HTTP, bounded in size and time, failures told in one line."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx
import msgspec

from agent.failures import NotFleetgraph, Refused, Unreachable, describe_transport_error
from agent.wire import (
    COMPLETE_COMMAND,
    FOLLOW_COMMANDS,
    HELLO,
    INGEST,
    RECORD_HASHES,
    START_COMMAND,
    TAKE_COMMANDS,
    Command,
    CommandRef,
    CommandResult,
    CommandStart,
    Greeting,
    HashAnswer,
    HashReport,
    Hello,
    IngestAnswer,
    NodeStatus,
    Sections,
    status_query,
)
from agent.wire_status import REPORT_STATUS, StatusAnswer, StatusReport
from domain.errors import Code

T = TypeVar("T")
C = TypeVar("C", bound="Client")

REQUEST_SECONDS_MAX: Final = 60.0
CONNECT_SECONDS_MAX: Final = 10.0
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
REQUESTS_AT_ONCE_MAX: Final = 8
STREAM_QUIET_SECONDS_MAX: Final = 300.0
"""A stream that says nothing for so long may have lost its server without knowing it."""
_COMPRESS_FROM_BYTES: Final = 1024
_COMPRESSION: Final = 1  # sections are small or base64 of text: a higher level costs more time than it saves
_SHOWN_MAX: Final = 300
_REDIRECTS: Final = range(300, 400)
_SERVER_FAULTS: Final = 500


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, and the token for it, which no text of this value shows."""

    server: str
    token: str = field(repr=False)

    @property
    def endpoint(self) -> str:
        """The address of the GraphQL endpoint."""
        return f"{self.server.rstrip('/')}/graphql"


_NULL: Final = msgspec.Raw(b"null")


class _GraphqlError(msgspec.Struct, frozen=True):
    message: str
    extensions: dict[str, Any] = {}


class _Answer(msgspec.Struct, frozen=True):
    data: msgspec.Raw = _NULL
    errors: tuple[_GraphqlError, ...] = ()


class Client:
    """The mutations and queries an agent uses. Every method raises Unreachable, Refused or NotFleetgraph."""

    def __init__(self, http: httpx.AsyncClient, connection: Connection) -> None:
        self._http = http
        self._connection = connection
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE_MAX)

    async def hello(self, hello: Hello) -> Greeting:
        """Open a session for a node, which comes to be at its first hello."""
        answer = await self._execute(HELLO, {"input": hello}, dict[str, Greeting])
        return answer["hello"]

    async def record_hashes(self, entries: Sequence[HashReport]) -> tuple[HashAnswer, ...]:
        """Report hashes of up to 1,000 nodes; one answer for each entry, in order."""
        answer = await self._execute(RECORD_HASHES, {"entries": entries}, dict[str, tuple[HashAnswer, ...]])
        return _slot_each(answer["recordInventoryHashes"], entries)

    async def ingest(self, entries: Sequence[Sections]) -> tuple[IngestAnswer, ...]:
        """Send sections of up to 200 nodes; one answer for each entry, in order."""
        answer = await self._execute(INGEST, {"entries": entries}, dict[str, tuple[IngestAnswer, ...]])
        return _slot_each(answer["ingestSections"], entries)

    async def report_status(self, entries: Sequence[StatusReport]) -> tuple[StatusAnswer, ...]:
        """Say what up to 1,000 nodes say of themselves; one answer for each entry, in order."""
        answer = await self._execute(REPORT_STATUS, {"entries": entries}, dict[str, tuple[StatusAnswer, ...]])
        return _slot_each(answer["reportStatus"], entries)

    async def statuses(self, node_ids: Sequence[str]) -> tuple[NodeStatus, ...]:
        """Return the inventory status of a few nodes (as many as the server allows aliases), in order."""
        variables = {f"i{place}": node_id for place, node_id in enumerate(node_ids)}
        answer = await self._execute(status_query(len(node_ids)), variables, dict[str, NodeStatus])
        return tuple(answer[f"n{place}"] for place in range(len(node_ids)))

    async def take_commands(self, node_id: str) -> tuple[Command, ...]:
        """Return what the node is to do now, by number."""
        answer = await self._execute(TAKE_COMMANDS, {"nodeId": node_id}, dict[str, tuple[Command, ...]])
        return answer["takeCommands"]

    async def start_command(self, start: CommandStart) -> Command:
        """Say that a command is about to be run; raises Refused (CONFLICT) when it must not be."""
        answer = await self._execute(START_COMMAND, {"input": start}, dict[str, Command])
        return answer["startCommand"]

    async def complete_command(self, ref: CommandRef, result: CommandResult) -> None:
        """Say what became of a command."""
        given = {**msgspec.to_builtins(ref), **msgspec.to_builtins(result)}
        await self._execute(COMPLETE_COMMAND, {"input": given}, dict[str, Command])

    async def follow_commands(self, node_id: str) -> AsyncIterator[None]:
        """Yield whenever the server tells of a command, until the stream ends: by itself, or when it is long quiet."""
        async for _ in self._follow(FOLLOW_COMMANDS, {"nodeId": node_id}):
            yield

    async def _follow(self, query: str, variables: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Yield the data of each result of a subscription, until its stream ends."""
        body = msgspec.json.encode({"query": query, "variables": variables})
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        timeout = httpx.Timeout(CONNECT_SECONDS_MAX, read=STREAM_QUIET_SECONDS_MAX)
        try:
            async with self._http.stream(
                "POST", self._connection.endpoint, content=body, headers=headers, timeout=timeout
            ) as response:
                if response.headers.get("content-type", "").partition(";")[0] != "text/event-stream":
                    answer = self._read(response.status_code, await self._read_bounded(response))
                    raise _refusal(answer.errors[0]) if answer.errors else _no_stream(self._connection)
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        answer = self._read(httpx.codes.OK, line.removeprefix("data: ").encode())
                        if answer.errors:
                            raise _refusal(answer.errors[0])
                        yield bytes(answer.data)
        except httpx.ReadTimeout:
            return
        except httpx.TransportError as error:
            raise Unreachable(describe_transport_error(self._connection.server, error)) from error

    async def _execute(self, query: str, variables: Mapping[str, Any], kind: type[T]) -> T:
        body = msgspec.json.encode({"query": query, "variables": variables})
        # What it asks is what became of its own reports: a replica may not have them yet.
        strong = {"fleetgraph-consistency": "strong"}
        headers = {"content-type": "application/json", "accept": "application/json", **strong}
        if len(body) >= _COMPRESS_FROM_BYTES:
            body = gzip.compress(body, _COMPRESSION, mtime=0)
            headers["content-encoding"] = "gzip"
        async with self._slots:
            status, content = await self._post(body, headers)
        answer = self._read(status, content)
        if answer.errors:
            raise _refusal(answer.errors[0])
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except msgspec.DecodeError as error:
            raise NotFleetgraph(f"{self._connection.endpoint} answers in another schema: {error}") from error

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS_MAX),
                self._http.stream("POST", self._connection.endpoint, content=body, headers=headers) as response,
            ):
                if response.status_code in _REDIRECTS:
                    target = response.headers.get("location", "elsewhere")
                    raise NotFleetgraph(f"{self._connection.endpoint} redirects to {target[:_SHOWN_MAX]}; use that")
                return response.status_code, await self._read_bounded(response)
        except (httpx.TransportError, TimeoutError) as error:
            raise Unreachable(describe_transport_error(self._connection.server, error)) from error

    async def _read_bounded(self, response: httpx.Response) -> bytes:
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > ANSWER_BYTES_MAX:
                raise NotFleetgraph(f"{self._connection.endpoint} answered more than {ANSWER_BYTES_MAX} bytes")
        return bytes(content)

    def _read(self, status: int, content: bytes) -> _Answer:
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = _Answer()
        if answer.errors or (bytes(answer.data) != bytes(_NULL) and status == httpx.codes.OK):
            return answer
        where = self._connection.endpoint
        shown = f"HTTP {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise Refused(f"{where} refuses the token ({shown})", Code.UNAUTHENTICATED)
        if status >= _SERVER_FAULTS or status == httpx.codes.TOO_MANY_REQUESTS:
            raise Unreachable(f"{where} is not ready: {shown}")
        if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            raise Refused(f"{where} takes no request this large ({shown})", Code.INVALID_INPUT)
        raise NotFleetgraph(f"no Fleetgraph server at {where}: {shown}")


@asynccontextmanager
async def connect(connection: Connection, transport: httpx.AsyncBaseTransport | None = None) -> AsyncIterator[Client]:
    """Give a client whose connections are kept open for the block; `transport` replaces the network in tests."""
    async with connected(Client, connection, transport) as client:
        yield client


@asynccontextmanager
async def connected(
    kind: type[C], connection: Connection, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[C]:
    """Give a client of a kind that can ask for more."""
    limits = httpx.Limits(max_connections=REQUESTS_AT_ONCE_MAX, max_keepalive_connections=REQUESTS_AT_ONCE_MAX)
    timeout = httpx.Timeout(REQUEST_SECONDS_MAX, connect=CONNECT_SECONDS_MAX)
    headers = {"authorization": f"Bearer {connection.token}"}
    async with httpx.AsyncClient(headers=headers, limits=limits, timeout=timeout, transport=transport) as http:
        yield kind(http, connection)


def _no_stream(connection: Connection) -> NotFleetgraph:
    return NotFleetgraph(f"{connection.endpoint} does not stream")


def _refusal(error: _GraphqlError) -> Refused:
    text = error.extensions.get("code")
    code = Code(text) if text in set(Code) else None
    message = error.message[:_SHOWN_MAX]
    if code is Code.UNAUTHENTICATED:
        return Refused(f"the server does not take this token: {message}", code)
    seconds = error.extensions.get("retryAfterSeconds")
    told = float(seconds) if isinstance(seconds, int | float) else None
    return Refused(message if code else f"the server failed: {message}", code, told)


def _slot_each(answers: tuple[T, ...], entries: Sequence[object]) -> tuple[T, ...]:
    if len(answers) != len(entries):
        raise NotFleetgraph(f"{len(entries)} entries were answered in {len(answers)} slots")
    return answers
