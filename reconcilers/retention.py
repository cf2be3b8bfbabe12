"""Retention: the log forgets its oldest events, and says so to cursors that are older.

What else has ended is forgotten with the events that told it: where hardware left, what kernel logs told of earlier
boots, runs of remediation, attempts at acceptance, commands. What is open never is, and snapshots are kept.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from db.acceptance import prune_attempts
from db.commands import prune_commands
from db.database import Database
from db.departures import forget_departures
from db.events import forget_events
from db.node_faults import prune_faults
from db.remediation import prune_runs
from reconcilers.loop import Activation, Reconciler

PAUSE_SECONDS: Final = 60.0
# Runs and attempts keep their commands.
_PRUNES: Final = (forget_departures, prune_faults, prune_runs, prune_attempts, prune_commands)


def retention(database: Database, kept: timedelta, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler that keeps events, and what ended, for `kept`."""

    async def activate() -> Activation:
        before = now() - kept
        # Alone: while the log's partitions are dropped, everybody else waits.
        async with database.transaction() as tx:
            floor = await forget_events(tx, before)
        for prune in _PRUNES:
            async with database.transaction() as tx:
                await prune(tx, before)
        return Activation(0 if floor is None else 1, more=False)

    return Reconciler("retention", activate, PAUSE_SECONDS)
