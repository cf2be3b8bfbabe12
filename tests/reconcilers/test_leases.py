"""Leases that end and hold again, told by who looks now and then."""

from collections.abc import AsyncIterator

import pytest
from alembic import command

from db.database import Database
from db.liveness import SignOfLife, hear
from db.migrate import _config, _with_connection, check, migrate
from domain.ids import NodeId
from domain.node import LEASE_SECONDS
from reconcilers.leases import leases
from tests.support.server import RunningServer, hello, running_server
from tests.support.silence import silence


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _told(database: Database) -> int:
    return (await leases(database).activate()).done


async def _hear(database: Database, server: RunningServer, node_id: str) -> None:
    async with database.transaction() as tx:
        await hear(tx, [SignOfLife(server.operator.tenant_id, NodeId(node_id))])


async def test_a_lease_that_ends_or_holds_again_is_told_once(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    assert [await _told(database) for _ in range(2)] == [1, 0]
    await _hear(database, server, node_id)
    assert await _told(database) == 0
    await silence(database, LEASE_SECONDS + 1, node_id)
    assert [await _told(database) for _ in range(2)] == [1, 0]
    await _hear(database, server, node_id)
    assert [await _told(database) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("silent_seconds", [LEASE_SECONDS + 1, LEASE_SECONDS - 1])
async def test_a_lease_that_may_have_ended_and_holds_again_before_anybody_looks_is_told(
    database: Database, server: RunningServer, silent_seconds: int
) -> None:
    node_id = await hello(server.agent, "n1")
    assert await _told(database) == 1
    await silence(database, silent_seconds, node_id)
    await _hear(database, server, node_id)
    assert [await _told(database) for _ in range(2)] == [1, 0]


async def test_a_lease_that_held_and_ended_again_before_anybody_looks_is_told(
    database: Database, server: RunningServer
) -> None:
    node_id = await hello(server.agent, "n1")
    await silence(database, LEASE_SECONDS + 1, node_id)
    assert await _told(database) == 1
    await _hear(database, server, node_id)
    await silence(database, LEASE_SECONDS + 1, node_id)
    assert [await _told(database) for _ in range(2)] == [1, 0]


async def test_an_upgrade_tells_of_no_lease(database: Database, database_url: str, server: RunningServer) -> None:
    nodes = [await hello(server.agent, name) for name in ("n1", "n2")]
    await silence(database, LEASE_SECONDS + 1, nodes[0])
    await _with_connection(database_url, lambda connection: command.downgrade(_config(connection), "0013"))
    await migrate(database_url)
    await check(database_url)
    assert await _told(database) == 0
