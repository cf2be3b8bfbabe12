"""Heartbeats that go past the executor are answered as it would answer them."""

import json
import random
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from agent.wire import HELLO, RECORD_HASHES
from db.database import Database
from domain.admission import BEHIND_SECONDS_MAX, Rate, Rates, Why, Work
from resolvers.admission import Admission
from resolvers.context import Entrance, NoMeter
from resolvers.turns import WAITING_MAX
from tests.support.server import RunningServer, hash_of, hello, running_server, section
from web.heartbeats import NAME

OS: Final = hash_of(section("os", {"kernel": "6.12"}))
NODE: Final = "NODE"
"""Stands for the node's id."""


class Counting(NoMeter):
    """Keeps what was counted of heartbeats, and by which entrance they came."""

    def __init__(self) -> None:
        self.entrances: list[Entrance] = []
        self.counted: list[object] = []

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:  # noqa: ARG002
        if name == "RecordInventoryHashes":
            self.entrances.append(entrance)
        self.counted.append((name, failed))

    def turned_away(self, work: Work, why: Why) -> None:
        self.counted.append((work, why))


@pytest.fixture
async def counted(database: Database) -> AsyncIterator[tuple[RunningServer, Counting]]:
    meter = Counting()
    admission = Admission(Rates(node=Rate(1, 3)), clock=lambda: 1000.0)
    async with running_server(database, reconcile=False, meter=meter, admission=admission) as running:
        yield running, meter


async def _answered(server: RunningServer, query: str, variables: Any, **more: Any) -> tuple[int, Any]:  # noqa: ANN401
    headers = {"Authorization": f"Bearer {server.agent.token}"}
    request = {"query": query, "variables": variables, **more}
    response = await server.agent.http.post("/graphql", json=request, headers=headers)
    answer = response.json()
    for error in answer.get("errors", ()):
        error["extensions"].pop("requestId")
    return response.status_code, answer


def _entry(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - any entry
    return {"nodeId": NODE, "hashes": [OS], **more}


PAST: Final[dict[str, list[dict[str, Any]]]] = {
    "nothing": [],
    "asked": [_entry()],
    "a time": [_entry(sentAt="2026-01-02T03:04:05Z")],
    "no time": [_entry(sentAt=None)],
    "a time without a zone": [_entry(sentAt="2026-01-02T03:04:05")],
    "bad neighbours": [
        _entry(nodeId="node_00000000000000000000000000"),
        _entry(hashes=[{"name": "os", "sha256": "no"}]),
        _entry(),
        _entry(nodeId="x", hashes=[]),
    ],
    "no section": [_entry(hashes=[])],
    "unknown section": [_entry(hashes=[{**OS, "name": "gpu"}])],
    "twice": [_entry(hashes=[OS, OS])],
    "too many": [_entry()] * 1001,
}
LEFT: Final[dict[str, Any]] = {
    "no entries": {},
    "null": {"entries": None},
    "an unknown field": {"entries": [_entry(more=1)]},
    "an unknown variable": {"entries": [], "more": 1},
    "no list": {"entries": _entry()},
    "no hash": {"entries": [_entry(hashes=[{"name": "os"}])]},
    "no time": {"entries": [_entry(sentAt="today")]},
    "a number as id": {"entries": [_entry(nodeId=7)]},
}


def _of(node_id: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**entry, "nodeId": node_id if entry["nodeId"] == NODE else entry["nodeId"]} for entry in entries]


@pytest.mark.parametrize("name", PAST)
async def test_a_heartbeat_past_the_executor_is_answered_as_by_it(
    counted: tuple[RunningServer, Counting], name: str
) -> None:
    server, meter = counted
    entries = _of(await hello(server.agent, "n1"), PAST[name])
    past = await _answered(server, RECORD_HASHES, {"entries": entries})
    through = await _answered(server, RECORD_HASHES + " ", {"entries": entries}, operationName="RecordInventoryHashes")
    assert meter.entrances == [Entrance.FRONT, Entrance.GRAPH]
    assert past == through


@pytest.mark.parametrize("name", LEFT)
async def test_what_agents_do_not_send_is_left_to_the_executor(
    counted: tuple[RunningServer, Counting], name: str
) -> None:
    server, _ = counted
    assert await _answered(server, RECORD_HASHES, LEFT[name]) == await _answered(
        server, RECORD_HASHES + " ", LEFT[name]
    )


async def test_who_sends_too_much_is_told_so_past_the_executor_too(counted: tuple[RunningServer, Counting]) -> None:
    server, _ = counted
    entries = _of(await hello(server.agent, "n1"), [_entry()])
    answers = [await _answered(server, RECORD_HASHES, {"entries": entries}) for _ in range(4)]
    (slot,) = answers[-1][1]["data"]["recordInventoryHashes"]
    assert (slot["error"]["code"], slot["error"]["retryAfterSeconds"]) == ("RATE_LIMITED", 1.0)


class Drawn:
    """Requests of which most are nearly what agents send, and the state that a server may be in."""

    TIMES: Final[tuple[object, ...]] = (
        *("2026-01-02T03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02 03:04:05+01:00", "2026-01-02T03:04:05.1234567Z"),
        *("2026-01-02T24:00:00Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04Z", "20260102T030405Z", "2026-W01-1"),
        *("2026-01-02T03:04:05", "2026-01-02T03:04:05+0530", "2026-01-02T03:04:05-00:00", "2026-02-30T00:00:00Z"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-01-02T03:04:05+25:00", "now", ""),
        *(None, 0, 1e3, True, [], {}),
    )
    NAMES: Final = ("os", "cpu", "gpus", "OS", "gpu", "", "o\u0000s", "\uff4f\uff53", None, 1)
    HEXES: Final = (
        OS["sha256"],
        OS["sha256"].upper(),
        "0" * 64,
        "0" * 63,
        "0" * 65,
        "g" * 64,
        "",
        "\u0660" * 64,
        None,
        0,
    )
    HEADERS: Final[tuple[dict[str, str], ...]] = (
        *({}, {}, {}, {"accept": "*/*"}, {"accept": "application/graphql-response+json"}, {"accept": "text/html"}),
        *(
            {"accept-encoding": "gzip"},
            {"content-type": "application/json; charset=utf-8"},
            {"content-type": "text/plain"},
        ),
        *({"fleetgraph-consistency": "strong"}, {"fleetgraph-consistency": "weak"}, {"authorization": "Bearer no"}),
        *({"authorization": "Basic x"}, {"authorization": ""}, {"x-request-id": "mine"}),
    )

    def __init__(self, seed: int, nodes: list[str]) -> None:
        self._random = random.Random(seed)  # noqa: S311 - drawn to be repeated
        self._nodes = nodes

    def rarely(self, usual: Any, *others: Any) -> Any:  # noqa: ANN401 - any JSON
        return usual if self._random.random() < 0.95 else self._random.choice(others)

    def headers(self) -> dict[str, str]:
        return self._random.choice(self.HEADERS)

    def behind_seconds(self) -> float:
        return float(self.rarely(0.0, 10.0, 60.0))

    def failure(self) -> Exception | None:
        error: Exception | None = self.rarely(None, ConnectionResetError("cut"), ValueError("a bug"))
        return error

    def body(self, query: str) -> bytes:
        request = {
            "query": query,
            "variables": self.rarely({"entries": self._entries()}, {}, None, [], {"entries": None}),
        }
        more = self.rarely(
            {}, {"operationName": NAME}, {"operationName": "Other"}, {"operationName": None}, {"operationName": ""},
            {"extensions": {}}, {"extensions": None}, {"documentId": None}, {"more": 1}, {"operationName": 1},
        )  # fmt: skip
        items = [*request.items(), *more.items()]
        if self._random.random() < 0.1:
            items.reverse()
        text = json.dumps(dict(items), ensure_ascii=self._random.random() < 0.5)
        odd: str = self.rarely(
            text, f" \n{text} ", text[:-1], f"[{text}]", text.replace("node_", "node\\ud800"), "\ufeff" + text
        )
        return odd.encode()

    def _entries(self) -> Any:  # noqa: ANN401
        drawn = [self._entry() for _ in range(self._random.randrange(5))]
        return self.rarely(drawn, None, {}, drawn * 300, drawn[0] if drawn else 0, [None])

    def _entry(self) -> Any:  # noqa: ANN401
        names = self._random.sample(("os", "cpu", "gpus", "nics"), self._random.randrange(1, 4))
        hashes = [
            {"name": self.rarely(name, *self.NAMES), "sha256": self.rarely(OS["sha256"], *self.HEXES)} for name in names
        ]
        entry = {
            "nodeId": self.rarely(self._random.choice(self._nodes), "", "node_", "node_" + "z" * 26, 7, None, "né"),
            "hashes": self.rarely(hashes, [], None, hashes[0], hashes * 9, [None], [{**hashes[0], "more": 1}]),
        }
        return {**entry, **self.rarely({}, {"sentAt": self._random.choice(self.TIMES)}, {"more": None})}


async def _raw(server: RunningServer, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """Post a body; returns the answer letter for letter, but for the id that differs from request to request."""
    own = {"authorization": f"Bearer {server.agent.token}", "content-type": "application/json", **headers}
    response = await server.agent.http.post("/graphql", content=body, headers=own)
    named = dict(response.headers)
    request_id = named.pop("x-request-id")
    named.pop("content-length")  # compressed, ids of one length are not
    return response.status_code, named, response.text.replace(request_id, "REQUEST")


@pytest.mark.parametrize("seed", range(6))
async def test_drawn_requests_are_answered_and_counted_as_by_the_executor(database: Database, seed: int) -> None:
    behind = 0.0
    meter = Counting()
    admission = Admission(Rates(Rate(1, 3), Rate(5, 8)), lambda: behind, lambda: 1000.0)
    async with running_server(database, reconcile=False, meter=meter, admission=admission) as server:
        reports, heartbeats = server.services.reports, server.services.reports.heartbeats
        reports.late_signs.wait_seconds = 3600
        commit = heartbeats._commit
        nodes = [await hello(server.agent, f"n{number}") for number in range(4)]
        nodes.append(await hello(server.stranger, "theirs"))
        past = 0
        for number in range(60):
            seen = []
            # One space more is another document: that one goes through the executor.
            for query in (RECORD_HASHES, RECORD_HASHES + " "):
                drawn = Drawn(seed * 1000 + number, nodes)
                behind, failure = drawn.behind_seconds(), drawn.failure()

                async def failing(_: object, error: Exception | None = failure) -> Any:  # noqa: ANN401
                    raise error or AssertionError

                heartbeats._commit = commit if failure is None else failing
                admission._nodes.clear()
                admission._tenants.clear()
                body, headers = drawn.body(query), drawn.headers()
                meter.entrances.clear()
                meter.counted.clear()
                answers = [await _raw(server, body, headers) for _ in range(2)]
                signs = sorted(sign for own in reports.late_signs._signs.values() for sign in own)
                seen.append((answers, list(meter.counted), signs))
                past += meter.entrances.count(Entrance.FRONT)
                reports.late_signs._signs.clear()
            assert seen[0] == seen[1], (seed, number, body, headers)
            assert Entrance.FRONT not in meter.entrances
        assert past > 20, "the requests that are drawn are not what agents send"


@pytest.mark.parametrize("full", [False, True])
async def test_a_hello_that_is_not_let_in_is_told_so_past_the_executor_as_by_it(
    database: Database, *, full: bool
) -> None:
    behind, meter = 0.0, Counting()
    admission = Admission(behind_seconds=lambda: behind)
    async with running_server(database, reconcile=False, meter=meter, admission=admission) as server:

        async def said(query: str, headers: dict[str, str]) -> tuple[tuple[int, dict[str, str], str], list[object]]:
            meter.counted.clear()
            body = json.dumps({"query": query, "variables": {"input": {"identityKey": "n1"}}}).encode()
            return await _raw(server, body, headers), list(meter.counted)

        let_in = await said(HELLO, {})
        if full:
            server.services.reports.hellos._waiting = WAITING_MAX
        else:
            behind = BEHIND_SECONDS_MAX[Work.HELLO]
        for headers in ({}, {"authorization": "Bearer no"}, {"accept": "text/html"}, {"fleetgraph-consistency": "no"}):
            assert await said(HELLO, headers) == await said(HELLO + " ", headers)
        (status, head, _), counted = await said(HELLO, {})
    assert "RATE_LIMITED" not in str(let_in)
    assert (status, head["retry-after"]) == (429, "5")
    assert counted == [(Work.HELLO, Why.OVERLOAD), ("Hello", True)]


async def test_a_heartbeat_without_a_token_is_refused(server: RunningServer) -> None:
    request = {"query": RECORD_HASHES, "variables": {"entries": []}}
    response = await server.agent.http.post("/graphql", json=request)
    assert response.status_code == 401
