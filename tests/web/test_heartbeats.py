"""Heartbeats that go past the executor are answered as it would answer them."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from agent.wire import RECORD_HASHES
from db.database import Database
from domain.admission import Rate, Rates
from resolvers.admission import Admission
from resolvers.context import Entrance, NoMeter
from tests.support.server import RunningServer, hash_of, hello, running_server, section

OS: Final = hash_of(section("os", {"kernel": "6.12"}))
NODE: Final = "NODE"
"""Stands for the node's id."""


class Counting(NoMeter):
    def __init__(self) -> None:
        self.entrances: list[Entrance] = []

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:  # noqa: ARG002
        if name == "RecordInventoryHashes":
            self.entrances.append(entrance)


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


async def test_a_heartbeat_without_a_token_is_refused(server: RunningServer) -> None:
    request = {"query": RECORD_HASHES, "variables": {"entries": []}}
    response = await server.agent.http.post("/graphql", json=request)
    assert response.status_code == 401
