"""The fleet that is read: made by set-based statements, the same rows for every side."""

import asyncio
from dataclasses import dataclass
from typing import Final

import asyncpg

from bench.reading import fleet_sql as sql
from db.migrate import migrate

SERVED: Final = "tenant_01kbench000000000000000000"
"""The tenant that is read; by its name the server's own."""
BESIDE: Final = "tenant_01kbench000000000000000001"
"""Another one, whose rows lie between those that are read."""
BESIDE_SHARE: Final = 10
"""How many nodes the served tenant has for one of the other."""
_NAMES: Final = {SERVED: "default", BESIDE: "another"}
_ASKED_FOR: Final = 500
"""Which node is asked for by its id: the same one in every fleet."""
_STATEMENT_SECONDS_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Fleet:
    """A database with so many nodes of the served tenant, and one of them that is asked for by its id."""

    dsn: str
    nodes: int
    node_id: str


def make_fleet(dsn: str, nodes: int) -> Fleet:
    """Bring a new database up to date, and fill it."""
    return asyncio.run(_make(dsn, nodes))


async def _make(dsn: str, nodes: int) -> Fleet:
    await migrate(dsn)
    connection = await asyncpg.connect(dsn, command_timeout=_STATEMENT_SECONDS_MAX)
    try:
        async with connection.transaction():
            await _fill(connection, nodes)
            await connection.execute(sql.PEERS_LABELS)
        await connection.execute("vacuum analyze")
        # Neither the checkpoint of this load nor autovacuum shall fall into a measurement.
        await connection.execute("checkpoint")
        return Fleet(dsn, nodes, await connection.fetchval(sql.NODE, SERVED, _ASKED_FOR))
    finally:
        await connection.close()


async def _fill(connection: "asyncpg.Connection[asyncpg.Record]", nodes: int) -> None:
    await connection.execute(sql.FUNCTIONS)
    await connection.execute(sql.MADE)
    for tenant_id, count in ((SERVED, nodes), (BESIDE, max(1, nodes // BESIDE_SHARE))):
        await connection.execute(sql.TENANT, tenant_id, _NAMES[tenant_id])
        await connection.execute(sql.MAKE, tenant_id, count, nodes // count)
    for statement in sql.ROWS:
        await connection.execute(statement)
