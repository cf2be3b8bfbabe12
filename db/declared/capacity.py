"""Capacity: atoms counted by their class, each as allocated, reserved, available or none of them (rule 5)."""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import FromClause, Select

from db.declared.allocations import bookings, unended
from db.declared.nodes import NODES, nodes
from db.paging import Order
from db.tables import DeviceRow, NodeRow, PoolRow, table_of
from db.views.draft import Draft, Opened
from db.views.view import Expression, Relation, View, declare
from domain.device import PART_OF
from domain.room import WAIVED_REASONS

_devices: Final = table_of(DeviceRow)
_pools: Final = table_of(PoolRow)
_NUMBERS: Final = ("allocatable", "allocated", "reserved", "available")
_counts: Final = sa.table(
    "capacity", sa.column("resource", sa.Text), *(sa.column(name, sa.Integer) for name in _NUMBERS)
)
_YES: Final = sa.literal_column("true", sa.Boolean)
_NO: Final = sa.literal_column("false", sa.Boolean)
_NOTHING: Final = sa.literal_column("''", sa.Text)
_NONE: Final = sa.literal_column("0", sa.BigInteger)


def _takes_new_work() -> Expression:
    """Say of a node what `domain.room.Room.closed` says."""
    reasons = sa.func.unnest(NODES.expressions["unschedulable_reasons"])
    reason = reasons.table_valued(sa.column("reason", sa.Text), name="closed").render_derived()
    waived = [sa.func.starts_with(reason.c.reason, sa.literal_column(f"'{each}'", sa.Text)) for each in WAIVED_REASONS]
    closed = sa.select(_YES).select_from(reason).where(sa.not_(sa.or_(*waived))).correlate_except(reason)
    return sa.not_(closed.exists())


TAKES_NEW_WORK: Final = _takes_new_work()


class CapacityRow:
    """How many atoms of a class there are, by what can be done with them."""

    resource: str
    allocatable: int
    allocated: int
    reserved: int
    available: int


declare(CapacityRow, View("Capacity", _counts))

_BY_RESOURCE: Final = Order("resource", (sa.collate(_counts.c.resource, "C"),))


def _held(draft: Draft, opened: Opened) -> FromClause:
    """Return every id under which hardware is held: the atom's own, and those of what it is a part of.

    Of an atom that is no device any more its id says that.
    """
    held, part = bookings.alias(draft.name("b")), _devices.alias(draft.name("d"))
    by_id = sa.func.regexp_replace(held.c.device_id, sa.literal_column(f"'{PART_OF}'", sa.Text), _NOTHING)
    whole = sa.case((part.c.id.is_(None), by_id), else_=part.c.parent_id)
    ids = (
        sa.values(sa.column("id", sa.Text), sa.column("own", sa.Boolean), name=draft.name("v"))
        .data([(held.c.device_id, _YES), (whole, _NO), (held.c.node_id, held.c.device_id == held.c.node_id)])
        .lateral()
    )
    source = (
        opened.source.join(held, held.c.node_id == opened.put(nodes.c.id))
        .outerjoin(part, part.c.id == held.c.device_id)
        .join(ids, _YES)
    )
    now = held.c.during.op("@>", return_type=sa.Boolean())(sa.func.now())
    found = (
        sa.select(
            ids.c.id,
            sa.func.bool_or(now).label("now"),
            sa.func.bool_or(ids.c.own).label("own"),
            sa.func.bool_or(sa.and_(now, ids.c.own)).label("own_now"),
        )
        .select_from(source)
        .where(*opened.where, unended(held.c.during))
        .group_by(ids.c.id)
        .correlate_except(*opened.own, held, part, ids)
    )
    return found.subquery(draft.name("h"))


def _counted(draft: Draft, open_nodes: Callable[[list[Expression]], Opened], name: str) -> FromClause:
    atom, whole = _devices.alias(draft.name("d")), _devices.alias(draft.name("d"))
    columns = [("id", nodes.c.id), ("takes_new_work", TAKES_NEW_WORK)]
    # OFFSET keeps it together: else PostgreSQL asks for each atom what it need ask once for its node.
    of_nodes = open_nodes([column for _, column in columns]).select(columns).offset(_NONE).subquery(draft.name("n"))
    own, above, node = (_held(draft, open_nodes([nodes.c.id])) for _ in range(3))
    source = (
        of_nodes.join(atom, atom.c.node_id == of_nodes.c.id)
        .outerjoin(whole, whole.c.id == atom.c.parent_id)
        .outerjoin(own, own.c.id == atom.c.id)
        .outerjoin(above, sa.and_(above.c.id == atom.c.parent_id, above.c.own))
        .outerjoin(node, sa.and_(node.c.id == atom.c.node_id, node.c.own))
    )
    held = [own.c.now, above.c.own_now, node.c.own_now]
    usable = sa.and_(
        atom.c.bookable,
        atom.c.healthy,
        sa.not_(atom.c.missing),
        sa.not_(atom.c.partition_pending),
        sa.func.coalesce(whole.c.healthy & sa.not_(whole.c.missing), _YES),
        of_nodes.c.takes_new_work,
    )
    held_now = sa.func.coalesce(sa.or_(*held), _NO)
    atoms = (
        sa.select(
            atom.c.device_class.label("resource"),
            usable.label("usable"),
            held_now.label("now"),
            sa.func.coalesce(*held).is_not(None).label("held"),
        )
        .select_from(source)
        .where(sa.or_(atom.c.bookable, own.c.own))
        .correlate_except(of_nodes, atom, whole, own, above, node)
        .subquery(draft.name("a"))
    )
    kinds = {
        "allocatable": sa.or_(atoms.c.held, atoms.c.usable),
        "allocated": atoms.c.now,
        "reserved": sa.and_(atoms.c.held, sa.not_(atoms.c.now)),
        "available": sa.and_(atoms.c.usable, sa.not_(atoms.c.held)),
    }
    counts = [sa.cast(sa.func.count().filter(kinds[each]), sa.Integer).label(each) for each in _NUMBERS]
    found: Select[Any] = sa.select(atoms.c.resource, *counts).group_by(atoms.c.resource)
    return found.correlate_except(atoms).subquery(name)


def _of_pool(draft: Draft, name: str) -> FromClause:
    in_pool = Relation(NodeRow, ((nodes.c.pool_id, _pools.c.id),))
    return _counted(draft, lambda used: draft.open(NODES, None, used, relation=in_pool), name)


def _of_fleet(draft: Draft, name: str) -> FromClause:
    return _counted(draft, lambda used: draft.open(NODES, 0, used), name)


CAPACITY_OF_POOL: Final = Relation(CapacityRow, many=True, order=_BY_RESOURCE, source=_of_pool, size=5)
CAPACITY_OF_FLEET: Final = Relation(CapacityRow, many=True, order=_BY_RESOURCE, source=_of_fleet, size=5)
