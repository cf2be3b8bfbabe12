"""The reconciler of names: nodes planned by an earlier table of GPU models are planned anew, without a report."""

from typing import Final

from db import inventory as store
from db.database import Database
from domain.gpu_models import GPU_MODELS_VERSION
from reconcilers.loop import Activation, Reconciler

WAITING_MAX: Final = 256
PAUSE_SECONDS: Final = 5.0


def gpu_models(database: Database) -> Reconciler:
    """Make the reconciler; it adds to what waits to be planned only as far as that is short, so reports go first."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            replanned = await store.replan_named_before(tx, GPU_MODELS_VERSION, WAITING_MAX)
        if replanned:
            database.inventory_pending.set()
        return Activation(replanned, more=False)

    return Reconciler("gpu models", activate, PAUSE_SECONDS)
