"""Reports that are too many, and servers that fall behind, as agents and operators see them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest

from db.database import Database
from db.liveness import SignOfLife
from domain.admission import BEHIND_SECONDS_MAX, Rate, Rates, Work
from domain.ids import NodeId, TenantId
from domain.liveness import Patience
from reconcilers.liveness import liveness
from resolvers.admission import Admission
from resolvers.late_signs import LateSigns
from resolvers.lateness import LoopLag
from tests.support.server import HELLO, INGEST, Client, RunningServer, hash_of, hello, running_server, section
from tests.support.silence import listened, silence
from tests.support.waiting import until, until_seen
from web.app import utc_now

OS: Final = section("os", {"kernel": "6.12"})
RECORD: Final = """
mutation ($entries: [HashReportInput!]!) {
  recordInventoryHashes(entries: $entries) { error { code retryAfterSeconds } }
}
"""
STATUS: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { code } } }"
POISON: Final = """
alter table node_liveness add constraint poison check (clock_skew_seconds is null or node_id <> '{}')
"""
CHANGE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'


class Behind:
    """A process that is as far behind as the test says, on a clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.now = 1000.0


@pytest.fixture
def behind() -> Behind:
    return Behind()


@pytest.fixture
async def limited(database: Database, behind: Behind) -> AsyncIterator[RunningServer]:
    rates = Rates(node=Rate(1, 4), tenant=Rate(10, 10))
    admission = Admission(rates, lambda: behind.seconds, lambda: behind.now)
    async with running_server(database, admission=admission) as running:
        running.services.reports.late_signs.wait_seconds = 0.01
        yield running


def beats(*node_ids: str) -> list[dict[str, Any]]:
    return [{"nodeId": node_id, "hashes": [hash_of(OS)]} for node_id in node_ids]


async def test_a_node_that_sends_too_much_is_turned_away_in_its_slot_and_nobody_else(
    limited: RunningServer, behind: Behind
) -> None:
    loud, calm = await hello(limited.agent, "loud"), await hello(limited.agent, "calm")
    behind.now += 60
    for _ in range(4):
        (slot,) = (await limited.agent.data(RECORD, entries=beats(loud)))["recordInventoryHashes"]
        assert slot["error"] is None
    slots = (await limited.agent.data(RECORD, entries=beats(loud, calm)))["recordInventoryHashes"]
    assert [slot["error"] for slot in slots] == [{"code": "RATE_LIMITED", "retryAfterSeconds": 1.0}, None]
    behind.now += 1.0
    (slot,) = (await limited.agent.data(RECORD, entries=beats(loud)))["recordInventoryHashes"]
    assert slot["error"] is None


async def test_a_tenant_has_its_rate_by_entries_and_another_tenant_its_own(
    limited: RunningServer, behind: Behind
) -> None:
    nodes = [f"node_{number:026}" for number in range(12)]
    behind.now += 60
    slots = (await limited.agent.data(RECORD, entries=beats(*nodes)))["recordInventoryHashes"]
    codes = [slot["error"]["code"] for slot in slots]
    assert codes == ["NOT_FOUND"] * 10 + ["RATE_LIMITED"] * 2
    await hello(limited.stranger, "theirs")


async def test_a_process_that_falls_behind_turns_away_in_order_and_reads_go_on(
    limited: RunningServer, behind: Behind
) -> None:
    node_id = await hello(limited.agent, "n1")
    asked: dict[Work, tuple[Client, str, dict[str, Any]]] = {
        Work.SECTIONS: (limited.agent, INGEST, {"entries": [{"nodeId": node_id, "sections": [OS]}]}),
        Work.HELLO: (limited.agent, HELLO, {"input": {"identityKey": "n2"}}),
        Work.CHANGE: (limited.operator, CHANGE, {}),
        Work.STATUS: (limited.agent, STATUS, {"entries": [{"nodeId": node_id, "conditions": []}]}),
        Work.HEARTBEAT: (limited.agent, RECORD, {"entries": beats(node_id)}),
    }
    for last in Work:
        behind.seconds = BEHIND_SECONDS_MAX[last]
        turned_away = []
        for work, (client, query, variables) in asked.items():
            behind.now += 60
            if "RATE_LIMITED" in str(await client.send(query, **variables)):
                turned_away.append(work)
        assert turned_away == list(Work)[: list(Work).index(last) + 1]
        assert (await limited.operator.data("{ nodes { totalCount } }"))["nodes"]["totalCount"] > 0


async def test_a_request_that_is_refused_whole_says_so_to_http_too(limited: RunningServer, behind: Behind) -> None:
    behind.seconds = 8.0
    headers = {"Authorization": f"Bearer {limited.operator.token}"}
    response = await limited.operator.http.post("/graphql", json={"query": CHANGE}, headers=headers)
    assert (response.status_code, response.headers["retry-after"]) == (429, "5")
    (error,) = response.json()["errors"]
    assert (error["extensions"]["code"], error["extensions"]["retryAfterSeconds"]) == ("RATE_LIMITED", 5.0)
    metrics = (await limited.operator.http.get("/metrics", headers=headers)).text
    assert 'fleetgraph_turned_away_total{reason="overload",work="change"} 1.0' in metrics
    assert "fleetgraph_behind_seconds 8.0" in metrics


async def test_heartbeats_that_are_turned_away_keep_their_nodes_connected(
    limited: RunningServer, behind: Behind
) -> None:
    database = limited.services.database
    node_id, silent = await hello(limited.agent, "n1"), await hello(limited.agent, "n2")
    theirs = await hello(limited.stranger, "n3")
    await listened(database, 3600)
    await silence(database, 3600, node_id, silent, theirs)
    behind.seconds = 60
    slots = (await limited.agent.data(RECORD, entries=beats(node_id, theirs)))["recordInventoryHashes"]
    assert {slot["error"]["code"] for slot in slots} == {"RATE_LIMITED"}

    async def is_connected() -> bool:
        found = await limited.operator.data("query ($id: ID!) { computeNode(id: $id) { connectivity } }", id=node_id)
        return bool(found["computeNode"]["connectivity"] == "CONNECTED")

    await until_seen(is_connected)
    await liveness(database, Patience(), utc_now).activate()
    async with database.transaction() as tx:
        rows = await tx.fetch("select node_id from node_conditions where type = 'NodeUnreachable' and status = 'true'")
    assert {row.node_id for row in rows} == {silent, theirs}


async def test_a_poisoned_report_fails_alone_among_concurrent_ones(server: RunningServer) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(8)]
    database = server.services.database
    async with database.transaction() as tx:
        await tx.execute(POISON.format(nodes[3]))
    entries = [{**entry, "sentAt": utc_now().isoformat()} for entry in beats(*nodes)]
    answers = await asyncio.gather(
        *(server.agent.data(RECORD, entries=[entry]) for entry in entries[:6]),
        server.agent.data(RECORD, entries=entries[6:]),
    )
    together = (await server.agent.data(RECORD, entries=entries))["recordInventoryHashes"]
    for slots in ([slot for answer in answers for slot in answer["recordInventoryHashes"]], together):
        codes = [slot["error"] and slot["error"]["code"] for slot in slots]
        assert codes == [None] * 3 + ["INTERNAL"] + [None] * 4
    async with database.transaction() as tx:
        told = await tx.fetch("select node_id from node_liveness where clock_skew_seconds is not null")
    assert {row.node_id for row in told} == {*nodes} - {nodes[3]}


async def test_signs_of_life_wait_for_a_database_that_is_away_and_are_written_once_for_each_node() -> None:
    written: list[list[str]] = []
    failures = [ConnectionResetError()]

    async def hear(signs: Sequence[SignOfLife]) -> None:
        if failures:
            raise failures.pop()
        written.append([sign.node_id for sign in signs])

    late = LateSigns(hear)
    late.wait_seconds = 0.01
    ours, theirs = TenantId("t1"), TenantId("t2")
    for tenant, node in ((ours, "a"), (ours, "b"), (ours, "a"), (theirs, "a")):
        late.note(SignOfLife(tenant, NodeId(node)))
    await until(lambda: len(written) == 2)
    assert sorted(written[0]) == ["a", "b"]
    assert written[1] == ["a"]


async def test_one_long_turn_of_the_loop_is_no_overload() -> None:
    lag = LoopLag()
    lag._lags.extend([0, 9, 0, 0, 0])
    assert lag.seconds == 0
    lag._lags.extend([2, 3, 4, 5, 6])
    assert lag.seconds == 2


async def test_senders_that_rest_are_forgotten() -> None:
    now = 0.0
    admission = Admission(Rates(node=Rate(1, 2)), clock=lambda: now, senders_max=10)
    for number in range(100):
        now = number * 1.0
        admission.admit(Work.HEARTBEAT, TenantId("t"), f"n{number}")
    assert len(admission._nodes) <= 10
