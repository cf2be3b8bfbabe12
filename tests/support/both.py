"""One world behind servers that compile what they read, and one that executes every field in Python."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, cast
from unittest.mock import patch

import pytest
from graphql import parse, print_ast, separate_operations
from structlog.testing import capture_logs

from db.database import Database
from domain.access import Role
from resolvers.context import Entrance, NoMeter
from schema import answers
from tests.support.server import Client, RunningServer, client_of, running_server
from tests.support.world import BROKEN, World, make_world
from web.front import Front

OPERATOR, AGENT, STRANGER = "operator", "agent", "stranger"
PRINCIPALS: Final = (OPERATOR, AGENT, STRANGER)
"""Ours twice, and theirs; `BROKEN` is the fourth, whose rows no code of ours writes."""
_STREAM_ROWS: Final = 2


class Way(StrEnum):
    """How an operation is answered by compiled reads."""

    GRAPH = "inside the graph's execution"
    FRONT = "by the front"
    STREAMED = "by the front, pages in pieces of two rows"


@dataclass(slots=True)
class Counted(NoMeter):
    """A meter that remembers what was counted last."""

    reads: list[tuple[str, bool]] = field(default_factory=list)
    entrances: list[Entrance] = field(default_factory=list)

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:  # noqa: ARG002
        """Remember which way an operation came in."""
        self.entrances.append(entrance)

    def read(self, name: str, *, compiled: bool) -> None:
        """Remember a read by its field, and whether it was compiled."""
        self.reads.append((name, compiled))


@dataclass(frozen=True, slots=True)
class Operation:
    """What is sent."""

    query: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one server said, numbers as decimals and without the request's own id, and what it counted."""

    status: int
    body: Any
    reads: tuple[tuple[str, bool], ...]
    entrances: tuple[Entrance, ...]

    @property
    def codes(self) -> set[str]:
        """The codes of the errors."""
        errors = self.body.get("errors", ()) if isinstance(self.body, dict) else ()
        return {str(error["extensions"]["code"]) for error in errors}


@dataclass(frozen=True, slots=True)
class Answers:
    """What every server said."""

    operation: Operation
    principal: str
    executed: Answer
    compiled: Mapping[Way, Answer]

    def difference(self) -> str | None:
        """Return the first difference; the order of keys counts."""
        for way, answer in self.compiled.items():
            if _is_nothing(answer) and _is_nothing(self.executed):
                found = self._without_data(answer)
            else:
                found = difference([answer.status, answer.body], [self.executed.status, self.executed.body])
            if found is not None:
                return f"{way}: {found}"
        return None

    def _without_data(self, answer: Answer) -> str | None:
        """Compare what ended the execution: of several failures any may; which others are told is free.

        Reads that fail while they are read race each other, so of what is broken nothing more can be asked.
        """
        said, wanted = ({_shown(error) for error in each.body["errors"]} for each in (answer, self.executed))
        alike = said & wanted or self.principal == BROKEN
        return None if alike else f"no error in common: {said} and {wanted}"

    def shown(self) -> str:
        """Return everything for a reader."""
        operation = print_ast(separate_operations(parse(self.operation.query))[self.operation.name or ""])
        lines = [f"as {self.principal}, with {_shown(self.operation.variables)}:", operation]
        for way, answer in (*self.compiled.items(), ("field by field", self.executed)):
            lines += [f"{way}, {answer.reads}:", _shown(answer.body)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Side:
    """A server with a client for every principal, and what it counts.

    The siblings of a field that was refused before they began go on behind the answer: two servers with one meter
    would be counted for each other.
    """

    clients: Mapping[str, Client]
    counted: Counted


@dataclass(frozen=True, slots=True)
class Both:
    """The servers."""

    world: World
    compiled: Mapping[Way, Side]
    executed: Side

    async def ask(self, operation: Operation, principal: str, ways: Sequence[Way] = tuple(Way)) -> Answers:
        """Send an operation to all servers, or to those of some ways."""
        answers = {}
        with _unlogged(principal):
            executed = await self._answer(self.executed, principal, operation)
            for way in ways:
                # What is missing after the first piece has been sent ends an answer in its middle.
                if (principal, way) != (BROKEN, Way.STREAMED):
                    with _in_pieces(way):
                        answers[way] = await self._answer(self.compiled[way], principal, operation)
        return Answers(operation, principal, executed, answers)

    async def _answer(self, side: Side, principal: str, operation: Operation) -> Answer:
        client, counted = side.clients[principal], side.counted
        counted.reads.clear()
        counted.entrances.clear()
        request = {"query": operation.query, "variables": dict(operation.variables), "operationName": operation.name}
        response = await client.http.post("/graphql", json=request, headers={"Authorization": f"Bearer {client.token}"})
        body = _body(response.text)
        return Answer(response.status_code, body, tuple(counted.reads), tuple(counted.entrances))


@asynccontextmanager
async def both_servers(database: Database) -> AsyncIterator[Both]:
    """Make the world, and run the servers; nothing moves while they run."""
    world = await make_world(database)
    by_front, by_graph, by_field = Counted(), Counted(), Counted()
    async with (
        running_server(database, reconcile=False, meter=by_front) as front,
        running_server(database, reconcile=False, meter=by_graph) as graph,
        running_server(database, reconcile=False, meter=by_field, compiled_reads=False) as executed,
    ):
        graph.app.user_middleware = [
            each for each in graph.app.user_middleware if cast("object", each.cls) is not Front
        ]
        fronts = Side(await _clients(database, front), by_front)
        graphs = Side(await _clients(database, graph), by_graph)
        ways = {Way.GRAPH: graphs, Way.FRONT: fronts, Way.STREAMED: fronts}
        yield Both(world, ways, Side(await _clients(database, executed), by_field))


async def _clients(database: Database, server: RunningServer) -> dict[str, Client]:
    broken = await client_of(database, server.operator.http, BROKEN, Role.OPERATOR)
    return {OPERATOR: server.operator, AGENT: server.agent, STRANGER: server.stranger, BROKEN: broken}


@contextmanager
def _in_pieces(way: Way) -> Iterator[None]:
    rows = _STREAM_ROWS if way is Way.STREAMED else answers.STREAM_ROWS
    with patch.object(answers, "STREAM_ROWS", rows):
        yield


def _body(text: str) -> Any:  # noqa: ANN401 - JSON, or what is none
    try:
        body = json.loads(text, object_pairs_hook=_object, parse_float=Decimal, parse_int=Decimal)
    except json.JSONDecodeError:
        return f"no JSON: {text}"
    for error in body.get("errors", ()):
        error["extensions"].pop("requestId")
    # Root fields are read at the same time: which of them fails first is nobody's promise.
    body.get("errors", []).sort(key=lambda error: _shown([error.get("path"), error]))
    return body


@contextmanager
def _unlogged(principal: str) -> Iterator[None]:
    """Keep the log of what was broken on purpose away from the reader of a failure."""
    with capture_logs() if principal == BROKEN else nullcontext():
        yield


def agree(answers: Answers) -> None:
    """Fail the test with everything that a reader needs, unless all answers are equal."""
    found = answers.difference()
    if found is not None:
        pytest.fail(f"{found}\n{answers.shown()}", pytrace=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key stands twice: {[key for key, _ in pairs]}"
    return found


def _is_nothing(answer: Answer) -> bool:
    return bool(answer.codes) and answer.body["data"] is None


def difference(left: Any, right: Any, path: str = "$") -> str | None:  # noqa: ANN401 - any JSON value
    """Return the first place where two JSON values differ; the order of keys counts."""
    match left, right:
        case dict(), dict():
            if list(left) != list(right):
                return f"{path}: keys {list(left)} and {list(right)}"
            pairs = [(left[key], right[key], f"{path}.{key}") for key in left]
        case list(), list() if len(left) == len(right):
            pairs = [(*each, f"{path}[{number}]") for number, each in enumerate(zip(left, right, strict=True))]
        case _:
            alike = left == right and isinstance(left, bool) == isinstance(right, bool)
            return None if alike else f"{path}: {_shown(left)[:300]} and {_shown(right)[:300]}"
    return next((found for pair in pairs if (found := difference(*pair)) is not None), None)


def _shown(value: Any) -> str:  # noqa: ANN401
    return json.dumps(value, ensure_ascii=False, default=str)
