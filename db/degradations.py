"""Telling who holds an atom that its health turned: nothing is released (rules 10 and 14)."""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from db.database import Transaction
from db.declared.allocations import ALLOCATIONS, allocations, bookings, unended
from db.events import NewEvent, write_events
from db.views.plan import compile_statement
from domain.events import allocation_turned
from domain.ids import AllocationId, DeviceId, NodeId, TenantId

_held: Final = bookings.alias("turned")
_TURNED: Final = compile_statement(
    sa.select(
        allocations.c.id,
        allocations.c.tenant_id,
        allocations.c.node_id,
        allocations.c.shard_id,
        ALLOCATIONS.expressions["degraded_reasons"].label("reasons"),
    )
    .where(
        allocations.c.id.in_(
            sa.select(_held.c.allocation_id).where(
                _held.c.device_id == sa.any_(sa.bindparam("v0", type_=sa.ARRAY(sa.Text))),
                unended(_held.c.during),
                sa.func.lower(_held.c.during, type_=sa.DateTime(timezone=True)) <= sa.func.now(),
            )
        )
    )
    .order_by(allocations.c.id)
)


async def tell_turned(tx: Transaction, device_ids: Collection[DeviceId]) -> None:
    """Tell what the allocations that hold these devices now read, after the devices' health turned."""
    if not device_ids:
        return
    rows = await tx.fetch(_TURNED.text, *_TURNED.arguments([sorted(device_ids)]))
    told = [(row, allocation_turned(AllocationId(row.id), row.shard_id, tuple(row.reasons))) for row in rows]
    await write_events(
        tx,
        [NewEvent(TenantId(row.tenant_id), NodeId(row.node_id), event.type, event.payload) for row, event in told],
    )
