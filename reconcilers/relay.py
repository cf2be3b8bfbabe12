"""The relay: committed outbox rows get their gapless positions, and other processes a hint."""

from datetime import timedelta
from typing import Final

from db.database import Database
from db.events import make_room, place_events
from db.hints import Hints
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 1000
KEPT: Final = timedelta(days=7)
PAUSE_SECONDS: Final = 0.05
"""How late an event of another process is noticed; this process's own commits wake the relay at once."""


def relay(database: Database, hints: Hints, kept: timedelta = KEPT) -> Reconciler:
    """Make the relay of this process; of many processes one works at a time.

    `kept` is how long events are: the partitions of the log, which the relay makes, are measured by it.
    """

    async def activate() -> Activation:
        async with database.session() as tx:
            placed = await place_events(tx, BATCH_MAX)
            if placed and placed.room < BATCH_MAX:
                await make_room(tx, kept)
        if not placed or not placed.count:
            return Activation(0, more=False)
        hints.publish(placed.position)
        return Activation(placed.count, more=placed.count == BATCH_MAX)

    return Reconciler("relay", activate, PAUSE_SECONDS, database.events_committed)
