"""An operator's word on a duplicate identity."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.booking import book
from tests.support.machines import machine
from tests.support.server import Client, RunningServer, hello, ingest, running_server
from web.app import utc_now

RESOLVE = """
mutation ($id: ID!, $keep: Boolean!) {
  resolveDuplicateIdentity(id: $id, keep: $keep) { id hardwareKey { trusted } conditions(status: TRUE) { type } }
}
"""
NODE = """
query ($id: ID!) {
  computeNode(id: $id) {
    hardwareKey { key trusted } noScheduleReasons conditions(status: TRUE) { reason message }
    devices { nodes { id } } inventoryStatus { state } snapshots { totalCount }
  }
}
"""


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose inventory reconciler is run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _node(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await server.operator.data(NODE, id=node_id))["computeNode"])


async def _apply(database: Database) -> None:
    while (await apply_pending(database, utc_now)).done:
        pass


async def _code(client: Client, node_id: str, *, keep: bool) -> str:
    answer = await client.send(RESOLVE, id=node_id, keep=keep)
    return str(answer["errors"][0]["extensions"]["code"])


@pytest.fixture
async def pair(database: Database, server: RunningServer) -> tuple[str, str]:
    """Two nodes on one machine: the first has its key and devices."""
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    for node_id in (first, second):
        await ingest(server.agent, node_id, machine("1"))
        await _apply(database)
    return first, second


async def test_keep_gives_the_key_and_the_devices_to_this_node(
    database: Database, server: RunningServer, pair: tuple[str, str]
) -> None:
    first, second = pair
    resolved = (await server.operator.data(RESOLVE, id=second, keep=True))["resolveDuplicateIdentity"]
    assert resolved["hardwareKey"] == {"trusted": True}
    loser = await _node(server, first)  # at once, whether or not anything is planned anew
    assert not loser["hardwareKey"]["trusted"]
    assert loser["noScheduleReasons"] == ["DuplicateIdentity"]
    await _apply(database)
    winner, loser = await _node(server, second), await _node(server, first)
    assert {device["id"] for device in winner["devices"]["nodes"]} >= {"GPU-1", "0c:42:a1:00:00:01"}
    assert (winner["conditions"], winner["noScheduleReasons"]) == ([], [])
    assert loser["devices"]["nodes"] == []
    assert f"its hardware is that of {second}" in loser["conditions"][0]["message"]
    # Looked at again and again, it stays so.
    await conflicts(database).activate()
    await _apply(database)
    assert (await _node(server, second), await _node(server, first)) == (winner, loser)
    # And the other way round.
    await server.operator.data(RESOLVE, id=first, keep=True)
    await _apply(database)
    assert (await _node(server, first))["hardwareKey"]["trusted"]
    assert not (await _node(server, second))["hardwareKey"]["trusted"]


async def test_without_keep_the_node_waits_no_longer_and_its_key_is_never_trusted(
    database: Database, server: RunningServer
) -> None:
    first, second = [await hello(server.agent, name) for name in ("first", "second")]
    for node_id in (first, second):
        await ingest(server.agent, node_id, {"system": machine("1")["system"]})
        await _apply(database)
    resolved = (await server.operator.data(RESOLVE, id=second, keep=False))["resolveDuplicateIdentity"]
    assert (resolved["hardwareKey"], resolved["conditions"]) == ({"trusted": False}, [])
    await _apply(database)
    node = await _node(server, second)
    assert (node["hardwareKey"]["trusted"], node["conditions"], node["noScheduleReasons"]) == (False, [], [])
    assert (await _node(server, first))["hardwareKey"]["trusted"]
    assert await _code(server.operator, second, keep=False) == "CONFLICT"
    # A word may be taken back.
    await server.operator.data(RESOLVE, id=second, keep=True)
    assert (await _node(server, second))["hardwareKey"]["trusted"]


async def test_without_keep_devices_stay_their_owners(
    database: Database, server: RunningServer, pair: tuple[str, str]
) -> None:
    first, second = pair
    await server.operator.data(RESOLVE, id=second, keep=False)
    await _apply(database)
    node = await _node(server, second)
    assert [each["reason"] for each in node["conditions"]] == ["DeviceOwnedElsewhere"]
    assert "its hardware" not in node["conditions"][0]["message"]
    assert len((await _node(server, first))["devices"]["nodes"]) >= 2


async def test_what_is_booked_is_not_pulled_from_under_its_booking(
    database: Database, server: RunningServer, pair: tuple[str, str]
) -> None:
    first, second = pair
    async with database.transaction() as tx:
        await tx.execute(
            "insert into allocations (id, tenant_id, node_id, during) "
            "select 'alloc_1', tenant_id, id, tstzrange(now(), null) from nodes where id = $1",
            first,
        )
        await tx.execute(
            "insert into bookings (id, tenant_id, allocation_id, node_id, device_id, during) "
            "select 'book_1', tenant_id, 'alloc_1', id, 'GPU-1', tstzrange(now(), null) from nodes where id = $1",
            first,
        )
    await server.operator.data(RESOLVE, id=second, keep=True)
    await _apply(database)
    assert "GPU-1" in {device["id"] for device in (await _node(server, first))["devices"]["nodes"]}
    winner = await _node(server, second)
    assert winner["hardwareKey"]["trusted"]
    assert "GPU-1 is a device of" in winner["conditions"][0]["message"]


async def test_what_was_released_before_it_began_keeps_no_device(
    database: Database, server: RunningServer, pair: tuple[str, str]
) -> None:
    first, second = pair
    await book(database, first, "GPU-1", after=timedelta(hours=1))
    async with database.transaction() as tx:
        await tx.execute("update bookings set during = 'empty'")
    await server.operator.data(RESOLVE, id=second, keep=True)
    await _apply(database)
    assert "GPU-1" in {device["id"] for device in (await _node(server, second))["devices"]["nodes"]}


async def test_there_is_nothing_to_resolve_where_nothing_waits(server: RunningServer, pair: tuple[str, str]) -> None:
    first, second = pair
    assert await _code(server.operator, first, keep=True) == "CONFLICT"
    assert await _code(server.operator, first, keep=False) == "CONFLICT"
    assert await _code(server.operator, "node_00000000000000000000000001", keep=True) == "NOT_FOUND"
    assert await _code(server.stranger, second, keep=True) == "NOT_FOUND"
    assert await _code(server.agent, second, keep=True) == "FORBIDDEN"


async def test_another_tenants_key_is_not_to_be_taken(database: Database, server: RunningServer) -> None:
    for client in (server.stranger, server.agent):
        node_id = await hello(client, "n1")
        await ingest(client, node_id, {"system": machine("1")["system"]})
        await _apply(database)
    assert await _code(server.operator, node_id, keep=True) == "CONFLICT"
    await server.operator.data(RESOLVE, id=node_id, keep=False)
    assert (await _node(server, node_id))["conditions"] == []


@pytest.mark.parametrize(("keep", "kept"), [(True, "GPU-2"), (False, "GPU-1")])
async def test_of_two_machines_in_turns_the_present_is_kept_or_the_next_taken(
    database: Database,
    server: RunningServer,
    keep: bool,  # noqa: FBT001
    kept: str,
) -> None:
    node_id = await hello(server.agent, "n1")
    for digit in "121":
        await ingest(server.agent, node_id, machine(digit))
        await _apply(database)
    assert [each["reason"] for each in (await _node(server, node_id))["conditions"]] == ["TwoMachines"]
    await server.operator.data(RESOLVE, id=node_id, keep=keep)
    await _apply(database)
    node = await _node(server, node_id)
    assert (node["hardwareKey"]["trusted"], node["conditions"]) == (True, [])
    assert kept in {device["id"] for device in node["devices"]["nodes"]}
