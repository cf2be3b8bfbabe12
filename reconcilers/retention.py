"""Retention: the log forgets its oldest events, and says so to cursors that are older.

Where hardware left, and what kernel logs told of earlier boots, is forgotten with the events that told it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from db.database import Database
from db.departures import forget_departures
from db.events import forget_events
from db.node_faults import prune_faults
from reconcilers.loop import Activation, Reconciler

PAUSE_SECONDS: Final = 60.0


def retention(database: Database, kept: timedelta, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler that keeps events for `kept`."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            floor = await forget_events(tx, now() - kept)
            await forget_departures(tx, now() - kept)
            await prune_faults(tx, now() - kept)
        # A floor that moved may have more behind it.
        return Activation(0 if floor is None else 1, more=floor is not None)

    return Reconciler("retention", activate, PAUSE_SECONDS)
