"""Leases: time alone ends them, so nobody writes that, and who follows nodes would not hear of it."""

from typing import Final

from db import liveness as store
from db.database import Database
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 500
PAUSE_SECONDS: Final = 1.0
_LOCK: Final = 0x666C_6565_740A


def leases(database: Database) -> Reconciler:
    """Make the reconciler that tells when nodes are connected or are no more; of many processes one works at a time."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            if not await tx.value("select pg_try_advisory_xact_lock($1)", _LOCK):
                return Activation(0, more=False)
            turned = await store.turn_leases(tx, BATCH_MAX)
        return Activation(turned, more=turned == BATCH_MAX)

    return Reconciler("leases", activate, PAUSE_SECONDS)
