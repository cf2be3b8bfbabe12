"""Saying when nodes that are being emptied are empty: whatever ended, was released, or begins after all."""

from typing import Final

from db.connections import Row
from db.database import Database
from db.operator_axes import AxesChange, axes_of, lock_draining, save_axes
from domain.ids import NodeId, TenantId
from domain.operator_axes import axis_events, empty
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 500
PAUSE_SECONDS: Final = 2.0


def draining(database: Database) -> Reconciler:
    """Make the reconciler; of many processes each takes what the others do not hold."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            rows = await lock_draining(tx, BATCH_MAX)
            await save_axes(tx, [_change(row) for row in rows])
        return Activation(len(rows), more=len(rows) == BATCH_MAX)

    return Reconciler("draining", activate, PAUSE_SECONDS)


def _change(row: Row) -> AxesChange:
    before = axes_of(row)
    after = empty(before, is_held=row.is_held)
    return AxesChange(TenantId(row.tenant_id), NodeId(row.node_id), after, axis_events(before, after))
