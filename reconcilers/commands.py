"""Ending commands whose time is over: those not started by their not-after, and those whose result did not come.

No command waits for this to be over: none is delivered or started after its time, whether it says so already or not.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from db.commands import lock_overdue_commands, save_steps
from db.database import Database
from domain.commands import expire
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 500
PAUSE_SECONDS: Final = 2.0


def commands(database: Database, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler; of many processes each takes what the others do not hold."""

    async def activate() -> Activation:
        at = now()
        async with database.transaction() as tx:
            overdue = await lock_overdue_commands(tx, at, BATCH_MAX)
            ended = await save_steps(tx, [(each, expire(each, at)) for each in overdue], by=None)
        if ended:
            database.acceptance_due.set()
        return Activation(ended, more=len(overdue) == BATCH_MAX)

    return Reconciler("commands", activate, PAUSE_SECONDS)
