"""Whose turn it is to place events."""

import asyncio
from itertools import repeat

import pytest

from db.database import Database
from db.events import RELAY_LOCK, NewEvent, write_events
from db.hints import Hints
from domain.ids import TenantId
from reconcilers import relay as module
from reconcilers.relay import relay


async def test_a_relay_whose_turn_is_taken_places_its_events_as_soon_as_it_can(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = iter(repeat(0.001))
    monkeypatch.setattr(module, "_AGAIN_SECONDS", tries)
    async with database.transaction() as tx:
        await tx.execute("insert into tenants (id, name) values ('tenant_1', 'ours')")
        await write_events(tx, [NewEvent(TenantId("tenant_1"), None, "node.changed", {"changed": []})])
    async with database.transaction() as other:
        assert await other.value("select pg_try_advisory_xact_lock($1)", RELAY_LOCK)
        placing = asyncio.ensure_future(relay(database, Hints("memory://"), pause_seconds=None).activate())
        await asyncio.wait([placing], timeout=0.1)
        assert not placing.done()
    assert (await placing).done == 1


async def test_a_relay_that_does_not_come_to_its_turn_gives_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AGAIN_SECONDS", (0.001, 0.001))
    async with database.transaction() as other:
        assert await other.value("select pg_try_advisory_xact_lock($1)", RELAY_LOCK)
        activation = await relay(database, Hints("memory://")).activate()
    assert (activation.done, activation.more) == (0, False)
