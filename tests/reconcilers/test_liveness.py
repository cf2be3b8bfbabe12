"""Silences and clocks, from the sign of life to what keeps work off the node."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from db.database import Database
from domain.liveness import Patience
from reconcilers import liveness as module
from reconcilers.liveness import liveness, reachable
from tests.support.rows import Rows, written_rows
from tests.support.server import RunningServer, hash_of, hello, running_server, section
from tests.support.silence import listened, silence
from web.app import utc_now

HEARTBEAT: Final = """
mutation ($entries: [HashReportInput!]!) { recordInventoryHashes(entries: $entries) { error { code message } } }
"""
NODE: Final = """
query ($id: ID!) { computeNode(id: $id) {
    connectivity state schedulable noScheduleReasons unschedulableReasons clockSkewSeconds
    conditions { type status reason noSchedule }
} }
"""
STATUS: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { code } } }"
READY: Final = (
    "update nodes set provision_state = 'adopted', observed_generation = 1, no_schedule_reasons = '{foreign}'"
)
TOLD: Final = "select payload from outbox where type = 'node.condition.changed' order by sequence"


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _look(database: Database, patience: Patience | None = None) -> int:
    """Look once, and see that a second look writes nothing."""
    reconciler = liveness(database, patience or Patience(), utc_now)
    done = (await reconciler.activate()).done
    before = await _rows(database)
    assert (await reconciler.activate()).done == 0
    assert await _rows(database) == before
    return done


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        return await written_rows(session)


async def _told(database: Database) -> list[tuple[str, str, str | None, bool]]:
    async with database.session() as session:
        payloads = [row.payload for row in await session.fetch(TOLD)]
    return [(each["condition"], each["status"], each["reason"], each["noSchedule"]) for each in payloads]


async def _beat(server: RunningServer, *node_ids: str, **more: Any) -> None:  # noqa: ANN401 - any field
    hashes = [hash_of(section("os", {"kernel": "6"}))]
    entries = [{"nodeId": node_id, "hashes": hashes, **more} for node_id in node_ids]
    answers = (await server.agent.data(HEARTBEAT, entries=entries))["recordInventoryHashes"]
    assert [each["error"] for each in answers] == [None] * len(node_ids)


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await server.operator.data(NODE, id=node_id))["computeNode"])


async def test_a_node_goes_silent_is_lost_and_comes_back(database: Database, server: RunningServer) -> None:
    node_id, other = [await hello(server.agent, name) for name in ("n1", "n2")]
    await listened(database, 3600)
    async with database.transaction() as tx:
        await tx.execute(READY)
    assert (await _node(server, node_id))["connectivity"] == "CONNECTED"
    steps: list[tuple[int, str, int, list[str]]] = [
        (39, "CONNECTED", 0, []),
        (41, "DISCONNECTED", 0, []),
        (121, "UNREACHABLE", 1, ["NodeUnreachable"]),
        (500, "UNREACHABLE", 1, ["NodeUnreachable"]),
        (601, "LOST", 1, ["NodeUnreachable"]),
    ]
    for seconds, connectivity, done, reasons in steps:
        await silence(database, seconds, node_id)
        assert await _look(database) == done, seconds
        node = await _node(server, node_id)
        assert node["connectivity"] == connectivity
        assert node["state"] == ("READY" if connectivity == "CONNECTED" else connectivity)
        assert node["noScheduleReasons"] == ["foreign", *reasons]
        away = [] if connectivity == "CONNECTED" else [f"connectivity={connectivity.lower()}"]
        assert node["unschedulableReasons"] == [*away, "foreign", *reasons]
    await _beat(server, node_id)
    assert database.heard_again.is_set()
    back = await _node(server, node_id)
    assert back["connectivity"] == "CONNECTED"
    assert back["noScheduleReasons"] == ["foreign", "NodeUnreachable"], "until the reconciler looks"
    assert await _look(database) == 1
    assert (await _node(server, node_id))["noScheduleReasons"] == ["foreign"]
    assert (await _node(server, other))["conditions"] == []
    assert await _told(database) == [
        ("NodeUnreachable", "true", "Unreachable", True),
        ("NodeUnreachable", "true", "Unreachable", True),
        ("NodeUnreachable", "true", "Lost", True),
        ("NodeUnreachable", "false", None, True),
    ]


async def test_a_hello_brings_a_lost_node_back(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await listened(database, 3600)
    await silence(database, 9000, node_id)
    assert await _look(database) == 1
    database.heard_again.clear()
    assert await hello(server.agent, "n1") == node_id
    assert database.heard_again.is_set()
    assert await _look(database) == 1
    assert (await _node(server, node_id))["state"] == "READY"


async def test_servers_that_were_down_themselves_wait_a_lease_before_they_judge(
    database: Database, server: RunningServer
) -> None:
    gone, fine = [await hello(server.agent, name) for name in ("gone", "fine")]
    await listened(database, 3600)
    await silence(database, 700, gone)
    assert await _look(database) == 1
    # A night without a server: nobody was heard, and nobody listened.
    await silence(database, 30_000, fine)
    await listened(database, 33_600, noted_ago=30_000)
    assert await _look(database) == 0, "nobody listens yet"
    await reachable(database).activate()
    assert await _look(database) == 0, "somebody listens, but not for a lease"
    assert [(await _node(server, each))["connectivity"] for each in (gone, fine)] == ["LOST", "DISCONNECTED"]
    await _beat(server, fine)
    await listened(database, 41)
    await reachable(database).activate()
    assert await _look(database) == 0
    assert [(await _node(server, each))["connectivity"] for each in (gone, fine)] == ["LOST", "CONNECTED"]
    await silence(database, 30_000, fine)
    assert await _look(database) == 1, "who is still silent a lease later is lost"


async def test_a_process_that_listens_all_the_time_has_done_so_since_it_began(database: Database) -> None:
    await listened(database, 100, noted_ago=5)
    await reachable(database).activate()
    async with database.session() as session:
        seconds = await session.value("select extract(epoch from at - since)::float8 from listening")
    assert 100 <= seconds < 110


async def test_a_pool_says_when_its_nodes_are_lost_and_a_change_of_it_counts(
    database: Database, server: RunningServer
) -> None:
    operator = server.operator
    site = (await operator.data('mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'))["createSite"]
    create = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
    given = {"name": "p", "siteId": site["id"], "class": "METAL_HOST", "policy": {"lostAfter": 90}}
    pool = (await operator.data(create, input=given))["createPool"]["id"]
    node_id, other = [await hello(server.agent, name) for name in ("in", "out")]
    await operator.data("mutation ($id: ID!, $p: ID) { assignPool(id: $id, poolId: $p) { id } }", id=node_id, p=pool)
    await listened(database, 3600)
    await silence(database, 100, node_id, other)
    assert await _look(database) == 1
    assert [(await _node(server, each))["connectivity"] for each in (node_id, other)] == ["LOST", "DISCONNECTED"]
    change = "mutation ($id: ID!, $policy: JSON!) { updatePool(id: $id, input: {policy: $policy}) { id } }"
    await operator.data(change, id=pool, policy={"lostAfter": 1000})
    assert await _look(database) == 1
    assert (await _node(server, node_id))["connectivity"] == "DISCONNECTED"
    assert await _look(database, Patience(unreachable_seconds=50)) == 2


async def test_a_clock_that_is_off_is_shown_and_keeps_no_work_away(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    skews = [(timedelta(hours=2), 1), (timedelta(hours=3), 0), (timedelta(seconds=-30), 1), (timedelta(0), 1)]
    for skew, done in skews:
        await _beat(server, node_id, sentAt=(utc_now() + skew).isoformat())
        node = await _node(server, node_id)
        assert abs(node["clockSkewSeconds"] - skew.total_seconds()) < 2
        assert await _look(database) == done, skew
        assert (await _node(server, node_id))["noScheduleReasons"] == []
    await _beat(server, node_id)
    assert abs((await _node(server, node_id))["clockSkewSeconds"]) < 2, "what does not tell the time says nothing of it"
    assert await _told(database) == [
        ("ClockSkew", "true", "ClockAhead", False),
        ("ClockSkew", "true", "ClockBehind", False),
        ("ClockSkew", "false", None, False),
    ]


async def test_a_retired_node_may_be_silent_and_many_are_looked_at_page_by_page(
    database: Database, server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconcilers.sweep.BATCH_MAX", 2)
    nodes = [await hello(server.agent, f"n{number}") for number in range(5)]
    await listened(database, 3600)
    await silence(database, 700, *nodes)
    async with database.transaction() as tx:
        await tx.execute("update nodes set provision_state = 'retired' where id = $1", nodes[1])
    assert await _look(database) == 4


async def test_a_node_that_somebody_else_holds_is_left_for_the_next_look(
    database: Database, server: RunningServer
) -> None:
    nodes = [await hello(server.agent, name) for name in ("n1", "n2")]
    await listened(database, 3600)
    await silence(database, 700, *nodes)
    reconciler = liveness(database, Patience(), utc_now)
    async with database.transaction() as tx:
        await tx.execute("select from nodes where id = $1 for update", nodes[0])
        assert (await reconciler.activate()).done == 1
    assert (await reconciler.activate()).done == 1


async def test_of_two_that_look_at_once_one_does_the_work(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await listened(database, 3600)
    await silence(database, 700, node_id)
    async with database.transaction() as tx:
        assert await tx.value("select pg_try_advisory_xact_lock($1)", module._LOCK)
        assert (await liveness(database, Patience(), utc_now).activate()).done == 0
    assert (await liveness(database, Patience(), utc_now).activate()).done == 1


async def test_reports_hellos_and_looks_at_once_get_through_and_agree_in_the_end(
    database: Database, server: RunningServer
) -> None:
    names = [f"n{number}" for number in range(6)]
    nodes = [await hello(server.agent, name) for name in names]
    await listened(database, 3600)
    looks = [liveness(database, Patience(), utc_now) for _ in range(2)]
    for turn in range(6):
        await silence(database, 700, *nodes[::2])
        said = [{"type": "ForeignGpuExposure"}] if turn % 2 else []
        statuses = [{"nodeId": node_id, "conditions": said} for node_id in reversed(nodes)]
        await asyncio.gather(
            *(look.activate() for look in looks),
            *(hello(server.agent, name) for name in names),
            server.agent.data(STATUS, entries=statuses),
            _beat(server, *nodes[3:]),
            server.agent.data(STATUS, entries=statuses[:3]),
            _beat(server, *reversed(nodes)),
        )
    await _look(database)
    for node_id in nodes:
        assert (await _node(server, node_id))["noScheduleReasons"] == ["ForeignGpuExposure"]
