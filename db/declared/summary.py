"""The fleet in numbers: nodes and their devices, counted by one thing at a time."""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import FromClause, Select

from db.declared.capacity import CAPACITY_OF_FLEET
from db.declared.nodes import NODES, STATE, nodes
from db.paging import Order
from db.tables import ConditionRow, DeviceRow, table_of
from db.views.draft import Draft
from db.views.view import Expression, Relation, View, declare
from domain.conditions import ConditionStatus
from domain.device import DeviceClass

_devices: Final = table_of(DeviceRow)
_conditions: Final = table_of(ConditionRow)
_counts: Final = sa.table("counts", sa.column("value", sa.Text), sa.column("count", sa.Integer))
_fleet: Final = sa.select(sa.literal_column("1", sa.Integer).label("here")).subquery("fleet")


class FleetCountRow:
    """How often a value stands among what is counted; null where the value is not known."""

    value: str | None
    count: int


class FleetSummaryRow:
    """The one row of a fleet, or of the part of it that a filter leaves."""


declare(FleetCountRow, View("FleetCount", _counts))

# The most frequent first, and among equals by value.
_MOST_FIRST: Final = Order("count", (-_counts.c.count, sa.collate(_counts.c.value, "C")))


def _counted(value: Expression) -> Select[Any, Any]:
    count = sa.cast(sa.func.count(), sa.Integer)
    return sa.select(value.label("value"), count.label("count")).group_by(value)


def _of_nodes(value: Expression) -> Callable[[Draft, str], FromClause]:
    def source(draft: Draft, name: str) -> FromClause:
        opened = draft.open(NODES, 0, [value])
        shown = opened.put(value)
        count = sa.cast(sa.func.count(), sa.Integer)
        found = sa.select(shown.label("value"), count.label("count")).select_from(opened.source)
        return found.where(*opened.where).group_by(shown).subquery(name)

    return source


def _belonging(draft: Draft, node_id: Expression) -> list[sa.ColumnElement[bool]]:
    """Keep what belongs to the nodes that the filter leaves; without one that is everything of the tenant."""
    if not draft.asked[0].where:
        return []
    return [node_id.in_(draft.open(NODES, 0, [nodes.c.id]).select([("id", nodes.c.id)]))]


def _of_gpus(value: Expression) -> Callable[[Draft, str], FromClause]:
    def source(draft: Draft, name: str) -> FromClause:
        is_gpu = _devices.c.device_class == sa.literal_column(f"'{DeviceClass.GPU}'", sa.Text)
        where = (_devices.c.tenant_id == draft.tenant, is_gpu, *_belonging(draft, _devices.c.node_id))
        return _counted(value).where(*where).subquery(name)

    return source


def _of_conditions(draft: Draft, name: str) -> FromClause:
    holds = _conditions.c.status == sa.literal_column(f"'{ConditionStatus.TRUE}'", sa.Text)
    where = (_conditions.c.tenant_id == draft.tenant, holds, *_belonging(draft, _conditions.c.node_id))
    return _counted(_conditions.c.type).where(*where).subquery(name)


def _counts_by(source: Callable[[Draft, str], FromClause]) -> Relation:
    return Relation(FleetCountRow, many=True, order=_MOST_FIRST, source=source, size=64)


SUMMARY: Final = declare(
    FleetSummaryRow,
    View(
        "FleetSummary",
        _fleet,
        relations={
            "gpu_models": _counts_by(_of_gpus(_devices.c.gpu_model)),
            "gpu_products": _counts_by(_of_gpus(_devices.c.gpu_product)),
            "conditions": _counts_by(_of_conditions),
            "states": _counts_by(_of_nodes(STATE)),
            "pools": _counts_by(_of_nodes(nodes.c.pool_id)),
            "capacity": CAPACITY_OF_FLEET,
        },
        summary=True,
    ),
)
