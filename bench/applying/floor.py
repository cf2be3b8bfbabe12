"""The floor, as a process of its own: the rows of an applied database written to one where nothing is applied yet.

New rows come by COPY, changed ones by COPY beside their table and one UPDATE from there; 1,000 nodes a transaction,
durable as every other. Reading the rows is not counted. `python -m bench.applying.floor FROM TO POSTMASTER` prints
what it took as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import asyncpg
import uvloop

from bench.applying.meter import Meter, Spent
from bench.applying.rows import INSERTED, UPDATED

_BATCH: Final = 1000
Rows = Sequence[asyncpg.Record]
# Names of tables and columns are ours.
# ruff: noqa: S608


async def write_rows(source_dsn: str, target_dsn: str, meter: Meter) -> Spent:
    """Write to `target` what `source` has more."""
    source: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(source_dsn, command_timeout=600)
    target: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(target_dsn, command_timeout=600)
    try:
        await source.execute("create index on outbox (node_id)")
        for table, (key, columns) in UPDATED.items():
            named = ", ".join((key, *columns))
            await target.execute(
                f"create temporary table staged_{table} on commit delete rows as select {named} from {table} limit 0"
            )
        told = await target.fetchval("select coalesce(max(sequence), 0) from outbox")
        ids = [row[0] for row in await source.fetch("select node_id from node_inventory order by reported_at, node_id")]
        for first in range(0, len(ids), _BATCH):
            rows = await _read(source, ids[first : first + _BATCH], told)
            with meter.span():
                await _write(target, rows)
        return meter.spent()
    finally:
        await target.close()
        await source.close()


async def _read(source: "asyncpg.Connection[asyncpg.Record]", node_ids: Sequence[str], told: int) -> Mapping[str, Rows]:
    rows = {
        table: await source.fetch(f"select * from {table} where node_id = any ($1)", node_ids) for table in INSERTED
    }
    rows["outbox"] = [row for row in rows["outbox"] if row["sequence"] > told]  # the others came with the reports
    for table, (key, columns) in UPDATED.items():
        named = ", ".join((key, *columns))
        rows[table] = await source.fetch(f"select {named} from {table} where {key} = any ($1)", node_ids)
    return rows


async def _write(target: "asyncpg.Connection[asyncpg.Record]", rows: Mapping[str, Rows]) -> None:
    async with target.transaction():
        for table in INSERTED:
            if found := rows[table]:
                await target.copy_records_to_table(table, records=found, columns=list(found[0].keys()))
        for table, (key, columns) in UPDATED.items():
            await target.copy_records_to_table(f"staged_{table}", records=rows[table], columns=[key, *columns])
            changes = ", ".join(f"{column} = s.{column}" for column in columns)
            await target.execute(f"update {table} t set {changes} from staged_{table} s where t.{key} = s.{key}")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(write_rows(sys.argv[1], sys.argv[2], Meter(int(sys.argv[3])))))))
