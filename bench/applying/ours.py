"""This server's side, as a process of its own: the inventory reconciler until nothing is pending.

`python -m bench.applying.ours DSN POSTMASTER` prints what it took as JSON.
"""

import asyncio
import json
import sys
from dataclasses import asdict

import uvloop

from bench.applying.meter import Meter, Spent
from db.database import Database
from reconcilers.inventory import inventory
from web.app import utc_now
from web.garbage import look_less_often


async def apply_all(dsn: str, meter: Meter) -> Spent:
    """Apply what is pending in a database."""
    database = await Database.connect(dsn)
    try:
        reconciler = inventory(database, utc_now)
        with meter.span():
            while (await reconciler.activate()).more:
                pass
        return meter.spent()
    finally:
        await database.close()


if __name__ == "__main__":
    look_less_often()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(apply_all(sys.argv[1], Meter(int(sys.argv[2])))))))
