"""The reconciler that has nodes planned anew though they report nothing new."""

from typing import Final

from db import inventory as store
from db.database import Database
from reconcilers.inventory import BATCH_MAX
from reconcilers.loop import Activation, Reconciler

REPLAN_PAUSE_SECONDS: Final = 10.0


def conflicts(database: Database) -> Reconciler:
    """Make the reconciler that has nodes planned anew for what no report tells.

    Another node may have let go of their devices, a booking may have ended, or a time has come.
    """

    async def activate() -> Activation:
        async with database.transaction() as tx:
            replanned = await store.replan_conflicts(tx, BATCH_MAX)
            replanned += await store.replan_released(tx, BATCH_MAX)
            replanned += await store.replan_due(tx, BATCH_MAX)
        if replanned:
            database.inventory_pending.set()
        return Activation(replanned, more=False)

    return Reconciler("conflicts", activate, REPLAN_PAUSE_SECONDS)
