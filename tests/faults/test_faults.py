"""Everything that runs is killed, stopped and cut off at moments that a seed draws, and nothing is lost or doubled.

FAULT_SEEDS names other seeds than the one of every day (`make faults`).
"""

import asyncio
import os
import random
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import httpx
import pytest

from db.database import Database
from db.migrate import migrate
from tests.faults.bad_network import Mishap
from tests.faults.checker import all_known, all_seen, at_rest, bugs_in, check
from tests.faults.clients import (
    PATIENCE_SECONDS,
    REQUEST_SECONDS_MAX,
    Node,
    Reporter,
    Selector,
    Viewer,
    Watcher,
    cursor_at,
)
from tests.faults.plan import Fault, carry_out, plan
from tests.faults.stand import Stand, own_postgres, stand
from tests.faults.zygote import Zygote

SEEDS = [int(each) for each in os.environ.get("FAULT_SEEDS", "1").split()]
FAULT_SECONDS = float(os.environ.get("FAULT_SECONDS", "8"))
SMALL_PARTITIONS = {
    "domain.event_partitions.PARTITION_MIN": 50,
    "domain.event_partitions.PARTITION_MAX": 50,
    "reconcilers.relay.BATCH_MAX": 25,
}


async def _near_the_end_of_a_partition(dsn: str) -> None:
    """Set a database up whose log is soon at the end of its first partition."""
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("update feed_head set position = room - 60, floor = room - 60")
    finally:
        await connection.close()


def _reporters(seed: int, running: Stand) -> list[Reporter]:
    """Two whose requests go astray and who lose patience, and one whose requests come in the order he sends them."""
    astray = [network.port for network in running.networks]
    reporters = []
    for number, (ports, patience) in enumerate(
        [(astray, REQUEST_SECONDS_MAX), (astray, REQUEST_SECONDS_MAX), (running.calm_ports, PATIENCE_SECONDS)]
    ):
        nodes = [Node(f"seed{seed}-reporter{number}-node{each}") for each in range(8)]
        chance = random.Random(f"{seed} reporter {number}")  # noqa: S311 - repeatable is what it is to be
        reporters.append(Reporter(ports, nodes, chance, patience))
    return reporters


def _summary(faults: list[Fault], running: Stand, reporters: list[Reporter], watchers: list[Watcher]) -> str:
    met = {kind.value: sum(network.met[kind] for network in running.networks) for kind in Mishap}
    lines = [
        *map(str, faults),
        *(f"{reporter.reports} reports taken, {reporter.failures} requests failed" for reporter in reporters),
        *(f"{len(watcher.seen)} events seen over {watcher.connections} connections" for watcher in watchers),
        str(met),
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_was_accepted_is_applied_and_every_event_is_seen_once(
    zygote: Zygote, seed: int, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    faults = plan(seed, FAULT_SECONDS)
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(own_postgres())
        dsn = postgres.dsn("fleetgraph")
        await _near_the_end_of_a_partition(dsn)
        running = await stack.enter_async_context(
            stand(zygote, dsn, log, seed=seed, share=0.2, constants=SMALL_PARTITIONS)
        )
        cursor = await cursor_at(running.calm_ports[0])
        ports = [network.port for network in running.networks]
        watchers = [Watcher(ports[turn:] + ports[:turn], cursor) for turn in (0, 1)]
        selectors = [Selector(ports, cursor, text="node1"), Selector(ports[::-1], cursor, text="reporter2")]
        # Nodes enter and leave the first with each report; the second has them all.
        viewers = [Viewer(ports, None, filter={"selector": "gpu.count=2"}), Viewer(ports[::-1], None)]
        reporters = _reporters(seed, running)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(each.run()) for each in (*watchers, *selectors, *viewers)]
            reporting = [tasks.create_task(reporter.run(stop)) for reporter in reporters]
            await carry_out(running, faults)
            stop.set()
            await asyncio.gather(*reporting)
            database = await Database.connect(running.dsn, size_max=2)
            await at_rest(database)
            # What went astray may have come last; the next heartbeat says what holds. The patient one needs none.
            async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
                for reporter in reporters[:2]:
                    reporter.ports = running.calm_ports
                    for node in reporter.nodes:
                        if node.acknowledged >= 0:
                            await reporter.report(http, node)
            await at_rest(database)
            await all_seen(database, watchers)
            await all_known(database, running.calm_ports[0], selectors, viewers)
            for task in watching:
                task.cancel()
        nodes = [node for reporter in reporters for node in reporter.nodes if node.id]
        try:
            await check(database, nodes, watchers)
            async with database.session() as tx:
                assert await tx.value("select count(*) from event_partitions") > 2
        finally:
            await database.close()
    sys.stdout.write(_summary(faults, running, reporters, watchers))
    assert bugs_in(log) == []
    assert len(watchers[0].seen) > len(nodes)
    assert all(client.connections > 1 for client in (*watchers, *selectors, *viewers))
    assert {"ENTERED", "CHANGED", "LEFT"} <= set(viewers[0].kinds)
    assert len(viewers[1].nodes) == len(nodes)
