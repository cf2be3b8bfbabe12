"""The relay: committed outbox rows get their gapless positions, and other processes a hint."""

from typing import Final

from db.database import Database
from db.events import place_events
from db.hints import Hints
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 1000
PAUSE_SECONDS: Final = 0.05
"""How late an event of another process is noticed; this process's own commits wake the relay at once."""
# The statement itself admits one relay at a time; this lock spares the others the wait.
_LOCK: Final = 0x666C_6565_7402


def relay(database: Database, hints: Hints) -> Reconciler:
    """Make the relay of this process; of many processes one works at a time."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            if not await tx.value("select pg_try_advisory_xact_lock($1)", _LOCK):
                return Activation(0, more=False)
            position, placed = await place_events(tx, BATCH_MAX)
        if placed:
            await hints.publish(position)
        return Activation(placed, more=placed == BATCH_MAX)

    return Reconciler("relay", activate, PAUSE_SECONDS, database.events_committed)
