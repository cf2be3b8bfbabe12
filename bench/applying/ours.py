"""This server's side, as a process of its own: the inventory reconciler until nothing is pending.

`python -m bench.applying.ours DSN POSTMASTER` prints what it took as JSON.
"""

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Final

import uvloop

from bench.applying.meter import Meter, Spent
from bench.stand.errors import CannotMeasure
from db.database import Database
from reconcilers.inventory import inventory
from web.app import utc_now
from web.garbage import look_less_often

_NOT_APPLIED: Final = "select count(*) from node_inventory where applied is distinct from reported"


async def apply_all(dsn: str, meter: Meter) -> Spent:
    """Apply what is pending in a database."""
    database = await Database.connect(dsn)
    try:
        reconciler = inventory(database, utc_now)
        with meter.span():
            while (await reconciler.activate()).more:
                pass
        async with database.transaction() as tx:
            if left := await tx.value(_NOT_APPLIED):
                raise CannotMeasure(f"{left} nodes were not applied")
        return meter.spent()
    finally:
        await database.close()


if __name__ == "__main__":
    look_less_often()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(apply_all(sys.argv[1], Meter(int(sys.argv[2])))))))
