"""The relay: committed outbox rows get their gapless positions, and other processes a hint.

Every process has one, for its own commits; those of processes with reconcilers also look for what others left.
"""

import asyncio
from datetime import timedelta
from typing import Final

from db.database import Database
from db.events import make_room, place_events
from db.hints import Hints
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 1000
KEPT: Final = timedelta(days=7)
PAUSE_SECONDS: Final = 0.05
"""How late an event is placed that its own process did not come to place."""
_AGAIN_SECONDS: Final = (0.002, 0.004, 0.008, 0.016)
"""Waits for another relay's statement, which may have begun before this process committed."""


def relay(
    database: Database, hints: Hints, kept: timedelta = KEPT, *, pause_seconds: float | None = PAUSE_SECONDS
) -> Reconciler:
    """Make the relay of this process; of many processes one works at a time.

    `kept` is how long events are: the partitions of the log, which the relay makes, are measured by it. Without a pause
    it looks when this process has committed events, and only then.
    """

    async def activate() -> Activation:
        async with database.session() as tx:
            placed = await place_events(tx, BATCH_MAX)
            for seconds in _AGAIN_SECONDS:
                if placed:
                    break
                # Whoever is at it after the last of these has begun after that commit, and places its events.
                await asyncio.sleep(seconds)
                placed = await place_events(tx, BATCH_MAX)
            if placed and placed.room < BATCH_MAX:
                await make_room(tx, kept)
        if not placed or not placed.count:
            return Activation(0, more=False)
        hints.publish(placed.position)
        return Activation(placed.count, more=placed.count == BATCH_MAX)

    return Reconciler("relay", activate, pause_seconds, database.events_committed)
