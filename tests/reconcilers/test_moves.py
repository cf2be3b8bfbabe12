"""Hardware that moves between nodes is told on both sides."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from db.connections import Row
from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from reconcilers.retention import retention
from tests.support.booking import book, end_bookings
from tests.support.server import STATUS, Client, RunningServer, hello, ingest, running_server
from web.app import utc_now


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _report(database: Database, client: Client, node_id: str, *uuids: str) -> str:
    """Apply a report of these GPUs and return its snapshot."""
    gpus = [{"uuid": uuid, "pciBusId": f"0000:{0x18 + place:02x}:00.0"} for place, uuid in enumerate(uuids)]
    await ingest(client, node_id, {"gpus": {"enumeration": "complete", "gpus": gpus}})
    await apply_pending(database, utc_now)
    return str((await client.data(STATUS, id=node_id))["computeNode"]["latestSnapshot"]["id"])


async def _told(database: Database) -> Sequence[Row]:
    async with database.transaction() as tx:
        return await tx.fetch("select node_id, payload from outbox where type = 'node.device.moved' order by sequence")


async def _waiting(database: Database) -> list[str]:
    async with database.transaction() as tx:
        return [row.device_id for row in await tx.fetch("select device_id from device_departures order by 1")]


async def test_a_card_that_left_one_node_and_comes_to_another_is_told_on_both(
    database: Database, server: RunningServer
) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    await _report(database, server.agent, first, "GPU-1", "GPU-2")
    gone = await _report(database, server.agent, first, "GPU-1")
    assert (await _told(database), await _waiting(database)) == ([], ["GPU-2"])
    there = await _report(database, server.agent, second, "GPU-2")
    told = {
        "deviceId": "GPU-2",
        "from": {"nodeId": first, "snapshotId": gone},
        "to": {"nodeId": second, "snapshotId": there},
    }
    assert [(row.node_id, row.payload) for row in await _told(database)] == [(first, told), (second, told)]
    assert await _waiting(database) == []


async def test_a_card_that_its_new_node_reports_first_is_told_when_the_old_one_lets_go(
    database: Database, server: RunningServer
) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    await _report(database, server.agent, first, "GPU-1", "GPU-2")
    await book(database, first, "GPU-2")
    there = await _report(database, server.agent, second, "GPU-2")
    gone = await _report(database, server.agent, first, "GPU-1")
    await conflicts(database).activate()
    await apply_pending(database, utc_now)
    assert await _told(database) == []  # it is booked where it was
    await end_bookings(database, "GPU-2")
    for _ in range(2):  # the old node lets go, then the new one takes it
        await conflicts(database).activate()
        await apply_pending(database, utc_now, limit=1)
        await apply_pending(database, utc_now)
    told = await _told(database)
    assert [row.node_id for row in told] == [first, second]
    assert told[0].payload["from"] == {"nodeId": first, "snapshotId": gone}
    assert told[0].payload["to"] == {"nodeId": second, "snapshotId": there}


async def test_a_card_that_comes_back_moved_nowhere(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "first")
    await _report(database, server.agent, node_id, "GPU-1")
    await _report(database, server.agent, node_id)
    await _report(database, server.agent, node_id, "GPU-1")
    assert (await _told(database), await _waiting(database)) == ([], [])


async def test_no_tenant_is_told_of_another_tenants_node(database: Database, server: RunningServer) -> None:
    ours, theirs = await hello(server.agent, "ours"), await hello(server.stranger, "theirs")
    await _report(database, server.agent, ours, "GPU-1")
    await _report(database, server.agent, ours)
    await _report(database, server.stranger, theirs, "GPU-1")
    assert (await _told(database), await _waiting(database)) == ([], [])


async def test_what_left_long_ago_is_forgotten(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "first")
    await _report(database, server.agent, node_id, "GPU-1", "GPU-2")
    await _report(database, server.agent, node_id, "GPU-1")
    await retention(database, timedelta(days=1), utc_now).activate()
    assert await _waiting(database) == ["GPU-2"]
    await retention(database, timedelta(days=-1), utc_now).activate()
    assert await _waiting(database) == []


async def test_what_is_booked_of_a_card_for_later_is_in_the_way_where_the_card_is(
    database: Database, server: RunningServer
) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    await _report(database, server.agent, first, "GPU-1", "GPU-2")
    await book(database, first, "GPU-1", "GPU-2", after=timedelta(hours=1))
    await _report(database, server.agent, first, "GPU-1")
    await _report(database, server.agent, second, "GPU-2", "GPU-3")
    found = await server.operator.data("{ fleetSummary { capacity { allocatable reserved available } } }")
    assert found["fleetSummary"]["capacity"] == [{"allocatable": 3, "reserved": 2, "available": 1}]
    query = """
    mutation ($node: ID!) { allocate(input: {shardId: "s", nodeId: $node, count: 1}) { devices { id } } }
    """
    assert (await server.operator.data(query, node=second))["allocate"]["devices"] == [{"id": "GPU-3"}]
