"""Faults of devices from the report to the database, and through what changes beside it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from db.database import Database
from domain.gpu_findings import FABRIC_PENDING_MAX
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.booking import book, end_bookings
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now

PENDING = {"health": {"rowRemap": {"pending": True, "failure": False}}}
FINE = {"health": {"rowRemap": {"pending": False, "failure": False}}}
SILENT: dict[str, Any] = {}
LOG = "select type, payload from outbox where type in ('device.health.changed', 'node.condition.changed') order by id"


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


def gpus(*given: dict[str, Any], enumeration: str = "complete") -> dict[str, Any]:
    """Return a section of GPUs, each at its own place."""
    placed = [
        {"uuid": f"GPU-{place}", "pciBusId": f"00000000:1{place}:00.0", **gpu} for place, gpu in enumerate(given, 1)
    ]
    return {"gpus": {"enumeration": enumeration, "gpus": placed}}


async def _apply(
    database: Database,
    server: RunningServer,
    node_id: str,
    documents: dict[str, Any],
    now: Callable[[], datetime] = utc_now,
) -> None:
    await ingest(server.agent, node_id, documents)
    assert (await apply_pending(database, now)).done == 1


async def _faults(database: Database) -> list[tuple[str, str, str]]:
    async with database.transaction() as tx:
        rows = await tx.fetch("select device_id, cause, reason, source, rule from device_health order by 1, 2")
    assert all((row.source, row.rule) == ("inventory", "inventory/1") for row in rows)
    return [(row.device_id, row.cause, row.reason) for row in rows]


async def _unhealthy(database: Database) -> list[str]:
    async with database.transaction() as tx:
        return [row.id for row in await tx.fetch("select id from devices where not healthy order by id")]


async def test_a_fault_quarantines_the_gpu_and_leaves_the_node_schedulable(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(PENDING, FINE))
    assert await _faults(database) == [("GPU-1", "RemapPending", "RowRemapPending")]
    assert await _unhealthy(database) == ["GPU-1"]
    async with database.transaction() as tx:
        assert await tx.value("select no_schedule_reasons from nodes") == []
        condition = await tx.first("select * from node_conditions where type = 'RowRemapPending'")
        assert condition is not None
        told = await tx.fetch(LOG)
    assert (condition.status, condition.reason, condition.no_schedule) == ("true", "RemapPending", False)
    assert condition.message == "GPU-1: a row remap waits for a reset"
    assert [each.type for each in told] == ["device.health.changed", "node.condition.changed"]
    assert told[0].payload["deviceId"] == "GPU-1"
    assert (told[0].payload["healthy"], told[0].payload["end"]) == (False, None)


async def test_it_follows_each_inventory_and_silence_changes_nothing(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(PENDING))
    raised = await _faults(database)
    for documents in (gpus(SILENT), gpus({"lost": True}, enumeration="incomplete"), gpus(enumeration="unavailable")):
        await _apply(database, server, node_id, documents)
        assert await _faults(database) == raised
        assert await _unhealthy(database) == ["GPU-1"]
    await _apply(database, server, node_id, gpus(FINE))
    assert (await _faults(database), await _unhealthy(database)) == ([], [])
    async with database.transaction() as tx:
        told = [each.payload for each in await tx.fetch(LOG) if each.type == "device.health.changed"]
        status = await tx.value("select status from node_conditions where type = 'RowRemapPending'")
    assert [(each["end"], each["healthy"]) for each in told] == [(None, False), ("cleared", True)]
    assert status == "false"


async def test_the_same_set_planned_anew_writes_nothing(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(PENDING, {"fabric": {"state": "in_progress"}}))
    state = "select (select array_agg(h.xmin::text) from device_health h), (select count(*) from outbox)"
    async with database.transaction() as tx:
        before = await tx.first(state)
        due_at = await tx.value("select due_at from node_inventory")
        await tx.execute("update node_inventory set replan = true")
    assert (await apply_pending(database, utc_now)).done == 1
    async with database.transaction() as tx:
        assert await tx.first(state) == before
        assert await tx.value("select due_at from node_inventory") == due_at


async def test_a_new_card_in_the_place_of_a_faulty_one_is_clean(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(PENDING))
    await _apply(database, server, node_id, gpus({"uuid": "GPU-new"}))
    assert (await _faults(database), await _unhealthy(database)) == ([], [])
    async with database.transaction() as tx:
        told = [each.payload for each in await tx.fetch(LOG) if each.type == "device.health.changed"]
    assert [(each["deviceId"], each["end"], each["healthy"]) for each in told] == [
        ("GPU-1", None, False),
        ("GPU-1", "replaced", False),
    ]


async def test_a_booked_gpu_keeps_its_booking_and_its_fault_until_both_end(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(FINE, FINE))
    await book(database, node_id, "GPU-1")
    await _apply(database, server, node_id, gpus(PENDING, FINE))
    await _apply(database, server, node_id, {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-2"}]}})
    async with database.transaction() as tx:
        row = await tx.first("select bookable, healthy, missing from devices where id = 'GPU-1'")
        assert row is not None
        assert (row.bookable, row.healthy, row.missing) == (True, False, True)
        assert await tx.value("select count(*) from bookings where during @> now()") == 1
    assert await _faults(database) == [("GPU-1", "RemapPending", "RowRemapPending")]
    await end_bookings(database, "GPU-1")
    await conflicts(database).activate()
    await apply_pending(database, utc_now)
    assert await _faults(database) == []


async def test_a_registration_in_progress_becomes_a_fault_without_a_report(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")

    def early() -> datetime:
        return utc_now() - FABRIC_PENDING_MAX - timedelta(minutes=1)

    await _apply(database, server, node_id, gpus({"fabric": {"state": "in_progress"}}), early)
    assert await _faults(database) == []
    assert (await conflicts(database).activate()).done == 1
    assert (await apply_pending(database, utc_now)).done == 1
    assert await _faults(database) == [("GPU-1", "FabricPending", "NvlinkDegraded")]
    assert (await conflicts(database).activate()).done == 0


async def test_what_a_tenant_reports_changes_no_health(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await _apply(database, server, node_id, gpus(PENDING, FINE))
    async with database.transaction() as tx:
        told = await tx.fetch(LOG)
        await tx.execute("update nodes set trust = 'tenant-controlled'")
        await tx.execute("update node_inventory set due_at = now()")
    assert (await conflicts(database).activate()).done == 0
    await _apply(database, server, node_id, gpus(FINE, PENDING))
    assert await _faults(database) == [("GPU-1", "RemapPending", "RowRemapPending")]
    assert await _unhealthy(database) == ["GPU-1"]
    async with database.transaction() as tx:
        assert await tx.fetch(LOG) == told
