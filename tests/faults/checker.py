"""Whether what clients saw is what the database has."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from db.database import Database, Transaction
from domain.digest import inventory_digest
from tests.faults.clients import Node, Selector, Viewer, Watcher, nodes_at

REST_SECONDS_MAX = 60.0
_CUT_OFF = re.compile(r'CancelledError"[,}]')
_ERROR = re.compile(r'^(?!\{).*Traceback|"level": ?"(error|critical)"')
LOG = "select id from events order by position"
OF_NODES = """
select e.id from events e join nodes n on n.id = e.node_id where strpos(n.hostname, $1) > 0 order by e.position
"""
POSITIONS = """
select f.floor, f.position, (select min(position) from events) as least, (select max(position) from events) as most
from feed_head f
"""
STATES = """
select n.id, n.identity_key, i.reported = i.applied as settled, i.applied_digest, i.error,
    (select s.digest from inventory_snapshots s where s.node_id = n.id order by s.id desc limit 1) as newest,
    (select array_agg(d.id order by d.id) from devices d where d.node_id = n.id and d.device_class = 'gpu') as gpus,
    (select array_agg(s.id order by s.id) from inventory_snapshots s where s.node_id = n.id) as snapshots,
    (select array_agg(e.payload->>'snapshotId' order by e.position)
        from events e where e.node_id = n.id and e.type = 'node.inventory.changed') as told
from nodes n join node_inventory i on i.node_id = n.id
"""
UNSETTLED = """
select (select count(*) from outbox) + (select count(*) from node_inventory where reported is distinct from applied)
"""


async def at_rest(database: Database) -> None:
    """Wait until nothing is left to do; TimeoutError when it does not come to that."""
    async with asyncio.timeout(REST_SECONDS_MAX):
        while await _left(database):  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


async def all_seen(database: Database, watchers: Sequence[Watcher]) -> None:
    """Wait until each has seen as many events as there are; whether these, `check` says."""
    async with database.session() as tx:
        count = await tx.value("select count(*) from events")
    async with asyncio.timeout(REST_SECONDS_MAX):
        while any(len(watcher.seen) < count for watcher in watchers):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


async def all_known(database: Database, port: int, selectors: Sequence[Selector], viewers: Sequence[Viewer]) -> None:
    """Wait until clients know what a query shows, and hold what they were told of on the way against the log."""
    clients: list[Selector | Viewer] = [*selectors, *viewers]
    for client in clients:
        fresh = await nodes_at(port, client.filter)
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_SECONDS_MAX):
                while client.nodes != fresh:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.02)
        assert client.nodes == fresh, _other(client.nodes, fresh)
    for selector in selectors:
        async with database.session() as tx:
            log = [row.id for row in await tx.fetch(OF_NODES, selector.text)]
        async with asyncio.timeout(REST_SECONDS_MAX):
            while len(selector.seen) < len(log):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        assert selector.seen == log, first_difference(selector.seen, log)


def _other(known: dict[str, Any], fresh: dict[str, Any]) -> dict[str, Any]:
    return {each: (known.get(each), fresh.get(each)) for each in known | fresh if known.get(each) != fresh.get(each)}


async def _left(database: Database) -> int:
    async with database.session() as tx:
        return int(await tx.value(UNSETTLED))


async def log_of(database: Database) -> list[str]:
    """Return the ids of all events in order."""
    async with database.session() as tx:
        return [row.id for row in await tx.fetch(LOG)]


async def check(database: Database, nodes: Sequence[Node], watchers: Sequence[Watcher]) -> None:
    """Hold what clients saw against a database at rest."""
    log = await log_of(database)
    async with database.session() as tx:
        await _positions_have_no_gap(tx, len(log))
        rows = {row.identity_key: row for row in await tx.fetch(STATES)}
    for watcher in watchers:
        assert watcher.seen == log, first_difference(watcher.seen, log)
    assert sorted(rows) == sorted(node.name for node in nodes), "a phantom, or a node that is missing"
    for node in nodes:
        row = rows[node.name]
        assert row.id == node.id, f"{node.name} is two nodes"
        assert row.error is None, row.error
        assert row.settled, f"{node.name} is not applied"
        digest = inventory_digest({each["name"]: each["sha256"] for each in node.sections()})
        assert row.applied_digest == row.newest == digest, f"{node.name} is not what it last reported"
        truth = sorted(gpu["uuid"] for gpu in node.documents()["gpus"]["gpus"])
        assert row.gpus == truth, f"{node.name} has {row.gpus} instead of {truth}"
        # As sets: two that apply a node take turns, but their snapshots' ids are of their own clocks.
        assert len(set(row.told)) == len(row.told), f"{node.name}: a snapshot was told twice"
        assert set(row.told) == set(row.snapshots), f"{node.name}: snapshots and what was told of them differ"


def bugs_in(log: Path) -> list[str]:
    """Return what programs logged as errors: each is a bug of ours, since a fault is a warning.

    Uvicorn's word for a request that was cut off because its server ends is none.
    """
    lines = (line for line in log.read_text().splitlines() if _ERROR.search(line) and not _CUT_OFF.search(line))
    return [line[-4000:] for line in lines]


def first_difference(seen: Sequence[str], log: Sequence[str]) -> str:
    """Tell where a watcher's events part from the log."""
    place = next(
        (i for i, (one, other) in enumerate(zip(seen, log, strict=False)) if one != other), min(len(seen), len(log))
    )
    return f"{len(seen)} seen of {len(log)}; they part at {place}: {seen[place : place + 3]}, {log[place : place + 3]}"


async def _positions_have_no_gap(tx: Transaction, count: int) -> None:
    row = await tx.first(POSITIONS)
    assert row is not None
    assert (row.least, row.most) == (row.floor + 1, row.position) == (row.floor + 1, row.floor + count)
