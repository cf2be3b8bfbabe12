"""Killing the server at any moment during an ingest ends in the state that never killing it ends in."""

import asyncio
import random
from typing import Any

from db.database import Database
from tests.support.program import server_process, start

NODES = 200
KILLS = 2
STATE = """
select n.identity_key, i.reported = i.applied as settled, i.applied_digest, i.error,
    (select array_agg(s.digest order by s.id) from inventory_snapshots s where s.node_id = n.id) as snapshots,
    (
        select jsonb_agg(to_jsonb(d) - 'node_id' - 'tenant_id' - 'updated_at' order by d.id)
        from devices d where d.node_id = n.id
    ) as devices,
    (select jsonb_agg(jsonb_build_array(c.type, c.status, c.reason) order by c.type)
        from node_conditions c where c.node_id = n.id) as conditions,
    (select array_agg(e.type order by e.position)
        from events e where e.node_id = n.id and e.type <> 'node.changed') as events
from nodes n join node_inventory i on i.node_id = n.id
order by n.identity_key
"""


async def _ingest(address: str, token: str) -> int:
    arguments = ("--nodes", str(NODES), "--seed", "7", "--once", "--server", address, "--token", token)
    simulation = await start("fleetgraph-agent", "simulate", *arguments, env={})
    await simulation.communicate()
    assert simulation.returncode is not None
    return simulation.returncode


async def _state(database_url: str) -> list[dict[str, Any]]:
    database = await Database.connect(database_url)
    try:
        async with database.transaction() as tx:
            gaps = await tx.value("select count(*) from feed_head where position <> (select count(*) from events)")
            assert gaps == 0
            assert await tx.value("select count(*) from outbox") == 0
            return [dict(row) for row in await tx.fetch(STATE)]
    finally:
        await database.close()


async def test_a_killed_server_ends_in_the_state_of_one_that_was_not(
    database_url: str, another_database_url: str
) -> None:
    async with server_process(database_url) as server:
        assert await _ingest(server.address, server.token) == 0
        await asyncio.sleep(0.5)
    undisturbed = await _state(database_url)
    assert len(undisturbed) == NODES
    assert all(row["settled"] and row["snapshots"] and len(row["snapshots"]) == 1 for row in undisturbed)

    moments = random.Random(11)  # noqa: S311 - the same moments in every run, as far as the machine allows
    async with server_process(another_database_url) as server:
        ingesting = asyncio.create_task(_ingest(server.address, server.token))
        for _ in range(KILLS):
            await asyncio.sleep(moments.uniform(0.2, 1.2))
            await server.kill()
            await server.start()
        if await ingesting != 0:  # it may give up after so many failures; what was accepted is not lost
            assert await _ingest(server.address, server.token) == 0
        await asyncio.sleep(0.5)
    assert await _state(another_database_url) == undisturbed
