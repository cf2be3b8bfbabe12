"""The floor, as a process of its own: the bare statement that heartbeats end in, and the bare rows of sections.

`python -m bench.ingesting.floor heartbeats DSN BATCH CONNECTIONS SECONDS` runs the statement over and over;
`python -m bench.ingesting.floor sections FROM TO BATCH CONNECTIONS` copies the rows of sections from one database to
another, so many nodes a transaction. Both print what they saw as JSON; reading is not counted.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any, Final

import uvloop

from db.connections import Planning, Row
from db.database import Database
from db.inventory import RECORD

_NODES: Final = "select tenant_id, node_id, reported from node_inventory order by node_id"
_SECTIONS: Final = "select * from inventory_sections where node_id = any ($1)"


@dataclass(frozen=True, slots=True)
class Written:
    """How many nodes' reports were written, and in what time."""

    nodes: int
    seconds: float


async def heartbeats(dsn: str, batch: int, connections: int, seconds: float) -> Written:
    """Run the statement for unchanged reports."""
    database = await Database.connect(dsn, size_max=connections)
    try:
        async with database.session() as session:
            rows = await session.fetch(_NODES)
        asked = [
            [
                [each.tenant_id for each in group],
                [each.node_id for each in group],
                [each.reported for each in group],
                [None] * len(group),
            ]
            for group in _groups(rows, batch)
        ]
        begun = time.perf_counter()

        async def lane(own: Sequence[list[list[Any]]]) -> int:
            nodes = 0
            source = cycle(own)
            while time.perf_counter() - begun < seconds:
                nodes += len(await database.fetch_alone(RECORD, next(source), Planning.FREE))
            return nodes

        # Each connection has nodes of its own: nobody waits for a row that another one has.
        lanes = [asked[first::connections] for first in range(min(connections, len(asked)))]
        nodes = sum(await asyncio.gather(*map(lane, lanes)))
        return Written(nodes, time.perf_counter() - begun)
    finally:
        await database.close()


async def sections(source_dsn: str, target_dsn: str, batch: int, connections: int) -> Written:
    """Copy the rows of sections."""
    source, target = await Database.connect(source_dsn), await Database.connect(target_dsn, size_max=connections)
    try:
        async with source.session() as session:
            groups = _groups(await session.fetch(_NODES), batch)
            read = [await session.fetch(_SECTIONS, [each.node_id for each in group]) for group in groups]
        waiting = iter(read)

        async def drain() -> None:
            for rows in waiting:
                connection = await target.lend()
                try:
                    await connection.copy_records_to_table(
                        "inventory_sections", records=[tuple(row) for row in rows], columns=list(rows[0].keys())
                    )
                finally:
                    await target.give_back(connection)

        begun = time.perf_counter()
        await asyncio.gather(*(drain() for _ in range(connections)))
        return Written(sum(len(group) for group in groups), time.perf_counter() - begun)
    finally:
        await source.close()
        await target.close()


def _groups(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def _asked(arguments: Iterator[str]) -> Awaitable[Any]:
    if next(arguments) == "heartbeats":
        dsn, batch, connections, seconds = arguments
        return heartbeats(dsn, int(batch), int(connections), float(seconds))
    source, target, batch, connections = arguments
    return sections(source, target, int(batch), int(connections))


async def _main() -> Any:  # noqa: ANN401 - what was written
    return await _asked(iter(sys.argv[1:]))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(_main()))))
