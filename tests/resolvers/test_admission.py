"""Reports that are too many, and servers that fall behind, as agents and operators see them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from db.database import Database
from db.liveness import SignOfLife
from domain.admission import BEHIND_SECONDS_MAX, Rate, Rates, Work, sheds
from domain.ids import NodeId, TenantId
from domain.liveness import Patience
from reconcilers.liveness import liveness
from resolvers.admission import Admission
from resolvers.late_signs import LateSigns
from resolvers.lateness import QUEUED_BYTES_MAX, QUEUED_MAX, LoopLag
from resolvers.lateness import behind as behind_of
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


async def _poison(owner: Database, table: str, column: str, node_id: str) -> None:
    """Have the database fail at one node's row in the middle of whatever is written to the table."""
    async with owner.transaction() as tx:
        await tx.execute(f"alter table {table} add constraint poison check ({column} <> '{node_id}') not valid")


@dataclass(frozen=True)
class Told:
    """A kind of report, the table that poison gets into, and what a node's entry says."""

    field: str
    kind: str
    table: str
    entry: Callable[[str], dict[str, Any]]


TOLD: Final = {
    "heartbeats": Told("recordInventoryHashes", "HashReportInput", "node_inventory", lambda node_id: beats(node_id)[0]),
    "sections": Told(
        "ingestSections", "SectionsInput", "inventory_sections", lambda node_id: {"nodeId": node_id, "sections": [OS]}
    ),
    "statuses": Told(
        "reportStatus",
        "StatusInput",
        "node_conditions",
        lambda node_id: {"nodeId": node_id, "conditions": [{"type": "MPSDown", "status": "TRUE"}]},
    ),
}


@pytest.mark.parametrize("name", TOLD)
async def test_a_poisoned_report_fails_alone_among_concurrent_ones(
    server: RunningServer, owner: Database, name: str
) -> None:
    told = TOLD[name]
    nodes = [await hello(server.agent, f"n{number}") for number in range(8)]
    await _poison(owner, told.table, "node_id", nodes[3])
    query = f"mutation ($entries: [{told.kind}!]!) {{ {told.field}(entries: $entries) {{ error {{ code }} }} }}"
    entries = [told.entry(node_id) for node_id in nodes]
    answers = await asyncio.gather(
        *(server.agent.data(query, entries=[entry]) for entry in entries[:6]),
        server.agent.data(query, entries=entries[6:]),
    )
    together = (await server.agent.data(query, entries=entries))[told.field]
    for slots in ([slot for answer in answers for slot in answer[told.field]], together):
        codes = [slot["error"] and slot["error"]["code"] for slot in slots]
        assert codes == [None] * 3 + ["INTERNAL"] + [None] * 4
    reported = "and reported is not null" if told.table == "node_inventory" else ""
    async with owner.transaction() as tx:
        written = await tx.fetch(f"select distinct node_id from {told.table} where true {reported}")  # noqa: S608
    assert {row.node_id for row in written} == {*nodes} - {nodes[3]}


async def test_a_poisoned_hello_fails_alone_among_concurrent_ones(server: RunningServer, owner: Database) -> None:
    await _poison(owner, "nodes", "identity_key", "n3")
    answers = await asyncio.gather(
        *(server.agent.send(HELLO, input={"identityKey": f"n{number}"}) for number in range(6))
    )
    codes = [[each["extensions"]["code"] for each in answer.get("errors", ())] for answer in answers]
    assert codes == [[]] * 3 + [["INTERNAL"]] + [[]] * 2


@pytest.mark.parametrize("name", TOLD)
async def test_who_speaks_for_another_tenants_node_in_one_group_with_it_changes_nothing(
    server: RunningServer, name: str
) -> None:
    told = TOLD[name]
    node_id, theirs = await hello(server.agent, "n1"), await hello(server.stranger, "n1")
    query = f"mutation ($entries: [{told.kind}!]!) {{ {told.field}(entries: $entries) {{ error {{ code }} }} }}"
    # The stranger's come first and last: neither what is written first nor what is written last may decide.
    asked = [(server.stranger, [node_id, theirs]), (server.agent, [theirs, node_id]), (server.stranger, [node_id])]
    answers = await asyncio.gather(
        *(client.data(query, entries=[told.entry(each) for each in ids]) for client, ids in asked)
    )
    codes = [[slot["error"] and slot["error"]["code"] for slot in answer[told.field]] for answer in answers]
    assert codes == [["NOT_FOUND", None], ["NOT_FOUND", None], ["NOT_FOUND"]]


async def test_signs_of_life_wait_for_a_database_that_is_away_and_are_written_once_for_each_node() -> None:
    written: list[list[tuple[str, str]]] = []
    failures = [ConnectionResetError()]

    async def hear(signs: Sequence[SignOfLife]) -> None:
        if failures:
            raise failures.pop()
        written.append([(sign.tenant_id, sign.node_id) for sign in signs])

    late = LateSigns(hear)
    late.wait_seconds = 0.01
    for tenant, node in (("t1", "a"), ("t1", "b"), ("t1", "a"), ("t2", "a")):
        late.note(SignOfLife(TenantId(tenant), NodeId(node)))
    await until(lambda: len(written) == 2)
    assert written == [[("t1", "a"), ("t1", "b")], [("t2", "a")]]


async def test_a_tenant_that_makes_nodes_up_takes_no_other_tenants_place_among_signs_of_life() -> None:
    written: list[tuple[str, str]] = []

    async def hear(signs: Sequence[SignOfLife]) -> None:
        written.extend((sign.tenant_id, sign.node_id) for sign in signs)

    late = LateSigns(hear, nodes_max=10)
    late.wait_seconds = 0.01
    for tenant, nodes in (("bad", 50), ("good", 3), ("bad", 100), ("other", 3)):
        for number in range(nodes):
            late.note(SignOfLife(TenantId(tenant), NodeId(f"{tenant}{number}")))
    await until(lambda: bool(written))
    assert Counter(tenant for tenant, _ in written) == {"bad": 4, "good": 3, "other": 3}


async def test_a_sign_of_life_that_cannot_be_written_keeps_no_other_from_it(
    limited: RunningServer, owner: Database, behind: Behind
) -> None:
    nodes = [await hello(limited.agent, f"n{number}") for number in range(4)]
    await silence(owner, 3600, *nodes)
    async with owner.transaction() as tx:
        await tx.execute(POISON.format(nodes[1]))
    behind.seconds = 60
    entries = [{**entry, "sentAt": utc_now().isoformat()} for entry in beats(*nodes)]
    slots = (await limited.agent.data(RECORD, entries=entries))["recordInventoryHashes"]
    assert {slot["error"]["code"] for slot in slots} == {"RATE_LIMITED"}

    async def all_but_one() -> bool:
        async with owner.transaction() as tx:
            rows = await tx.fetch("select node_id from node_liveness where last_seen_at > now() - interval '1 minute'")
        return {row.node_id for row in rows} == {*nodes} - {nodes[1]}

    await until_seen(all_but_one)


async def test_one_long_turn_of_the_loop_is_no_overload() -> None:
    lag = LoopLag()
    lag._lags.extend([0, 9, 0, 0, 0])
    assert lag.seconds == 0
    lag._lags.extend([2, 3, 4, 5, 6])
    assert lag.seconds == 2


async def test_what_waits_to_be_written_is_bounded_by_entries_and_by_bytes(server: RunningServer) -> None:
    reports = server.services.reports
    seconds = behind_of(LoopLag(), server.services.database, reports)
    assert [work for work in Work if sheds(work, seconds())] == []
    await asyncio.sleep(0.002)
    reports.sections.queued_bytes = QUEUED_BYTES_MAX + 1
    assert [work for work in Work if sheds(work, seconds())] == [Work.SECTIONS]
    await asyncio.sleep(0.002)
    reports.statuses.queued = QUEUED_MAX + 1
    assert [work for work in Work if sheds(work, seconds())] == list(Work)


async def test_senders_that_rest_are_forgotten() -> None:
    now = 0.0
    admission = Admission(Rates(node=Rate(1, 2)), clock=lambda: now, senders_max=10)
    for number in range(100):
        now = number * 1.0
        admission.admit(Work.HEARTBEAT, TenantId("t"), f"n{number}")
    assert len(admission._nodes) <= 10
