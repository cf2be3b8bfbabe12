"""The relay: committed outbox rows get their gapless positions, and other processes a hint."""

from datetime import timedelta
from typing import Final

from db.database import Database
from db.events import make_room, place_events, take_turn
from db.hints import Hints
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 1000
KEPT: Final = timedelta(days=7)
PAUSE_SECONDS: Final = 0.05
"""How late an event of another process is noticed; this process's own commits wake the relay at once."""
# The statement itself admits one relay at a time; this lock spares the others the wait.
_LOCK: Final = 0x666C_6565_7402


def relay(database: Database, hints: Hints, kept: timedelta = KEPT) -> Reconciler:
    """Make the relay of this process; of many processes one works at a time.

    `kept` is how long events are: the partitions of the log, which the relay makes, are measured by it.
    """

    async def activate() -> Activation:
        async with database.transaction() as tx:
            room = await take_turn(tx, _LOCK)
            if room is None:
                return Activation(0, more=False)
            if room < BATCH_MAX:
                await make_room(tx, kept)
            position, placed = await place_events(tx, BATCH_MAX)
        if placed:
            await hints.publish(position)
        return Activation(placed, more=placed == BATCH_MAX)

    return Reconciler("relay", activate, PAUSE_SECONDS, database.events_committed)
