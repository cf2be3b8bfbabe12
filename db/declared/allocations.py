"""Allocations and bookings as they are read."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import aggregate_order_by

from db.paging import Order
from db.tables import AllocationRow, BookingRow, DeviceRow, table_of
from db.views.filters import one_of
from db.views.view import Expression, Relation, View, declare

allocations: Final = table_of(AllocationRow)
bookings: Final = table_of(BookingRow)
_devices: Final = table_of(DeviceRow)
_MOMENT: Final = sa.DateTime(timezone=True)
_YES: Final = sa.literal_column("true", sa.Boolean)

BY_ID: Final = Order("id", (allocations.c.id,))


def ends(during: Expression) -> Expression:
    """Return when what is held is free again, as the indexes have it (`db.tables.booking.ENDS`)."""
    forever = sa.literal_column("'infinity'::timestamptz", _MOMENT)
    return sa.func.coalesce(sa.func.upper(during), forever, type_=_MOMENT)


def unended(during: Expression) -> ColumnElement[bool]:
    """Keep what is held, now or later; the empty range of what ended before it began has no bounds."""
    held = sa.and_(ends(during) > sa.func.now(), sa.not_(sa.func.isempty(during, type_=sa.Boolean())))
    return held.self_group()


def _bounds(during: Expression) -> dict[str, Expression]:
    # The trailing underscore is that of the graph's Python name.
    return {"from_": sa.func.lower(during, type_=_MOMENT), "to": sa.func.upper(during, type_=_MOMENT)}


_held: Final = bookings.alias("held")
_atom: Final = _devices.alias("atom")
_whole: Final = _devices.alias("whole")
_UNHEALTHY: Final = sa.func.coalesce(
    sa.select(
        sa.func.array_agg(
            aggregate_order_by(
                sa.literal_column("'AtomUnhealthy: '", sa.Text).concat(_held.c.device_id),
                sa.collate(_held.c.device_id, "C"),
            ),
            type_=sa.ARRAY(sa.Text),
        )
    )
    .select_from(
        _held.outerjoin(_atom, _atom.c.id == _held.c.device_id).outerjoin(_whole, _whole.c.id == _atom.c.parent_id)
    )
    .where(
        _held.c.allocation_id == allocations.c.id,
        unended(_held.c.during),
        sa.or_(
            _atom.c.missing.is_not(sa.false()),
            _atom.c.healthy.is_not(sa.true()),
            _whole.c.missing,
            sa.not_(_whole.c.healthy),
        ),
    )
    .correlate_except(_held, _atom, _whole)
    .scalar_subquery(),
    sa.literal_column("'{}'::text[]", sa.ARRAY(sa.Text)),
    type_=sa.ARRAY(sa.Text),
)
_of_allocation: Final = bookings.alias("of_allocation")
_HELD_DEVICES: Final = (
    sa.select(_of_allocation.c.device_id)
    .where(_of_allocation.c.allocation_id == allocations.c.id)
    .correlate_except(_of_allocation)
)

ALLOCATIONS: Final = declare(
    AllocationRow,
    View(
        "Allocation",
        allocations,
        key=allocations.c.id,
        tenant=allocations.c.tenant_id,
        expressions={
            **_bounds(allocations.c.during),
            "degraded_reasons": _UNHEALTHY,
            "degraded": sa.func.cardinality(_UNHEALTHY) > sa.literal_column("0", sa.Integer),
        },
        same=frozenset({"during"}),
        relations={
            "devices": Relation(
                DeviceRow,
                ((_devices.c.id, sa.any_(_HELD_DEVICES.scalar_subquery())),),
                many=True,
                order=Order("id", (_devices.c.id,)),
                size=8,
            ),
        },
        filters={"id": one_of(allocations.c.id)},
    ),
)
BOOKINGS: Final = declare(
    BookingRow,
    View(
        "Booking",
        bookings,
        key=bookings.c.id,
        tenant=bookings.c.tenant_id,
        expressions=_bounds(bookings.c.during),
        same=frozenset({"during"}),
        relations={"allocation": Relation(AllocationRow, ((allocations.c.id, bookings.c.allocation_id),))},
    ),
)


def allocations_of(node_id: Expression) -> Relation:
    """Return the relation to the allocations of a node that have not ended."""
    keys = ((allocations.c.node_id, node_id), (unended(allocations.c.during), _YES))
    return Relation(AllocationRow, keys, many=True, order=BY_ID, size=8)


def bookings_of(device_id: Expression, node_id: Expression) -> Relation:
    """Return the relation to the bookings of a device that have not ended, the earliest first."""
    keys = (
        (bookings.c.device_id, device_id),
        (bookings.c.node_id, node_id),
        (unended(bookings.c.during), _YES),
    )
    earliest = Order("from", (sa.func.lower(bookings.c.during, type_=_MOMENT), bookings.c.id))
    return Relation(BookingRow, keys, many=True, order=earliest)
