"""Devices as they are read."""

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from db.declared.allocations import bookings_of
from db.paging import Order
from db.tables import DeviceHealthRow, DeviceRow, NodeRow, table_of
from db.views.documents import unknown_facts
from db.views.filters import equal, one_of
from db.views.view import Relation, View, Where, declare

devices: Final = table_of(DeviceRow)
_nodes: Final = table_of(NodeRow)
_health: Final = table_of(DeviceHealthRow)

BY_ID: Final = Order("id", (devices.c.id,))

HEALTH: Final = declare(DeviceHealthRow, View("DeviceHealth", _health, tenant=_health.c.tenant_id))
_IT_OR_ITS_WHOLE: Final = sa.any_(array([devices.c.id, devices.c.parent_id], type_=sa.Text))

DEVICES: Final = declare(
    DeviceRow,
    View(
        "Device",
        devices,
        key=devices.c.id,
        tenant=devices.c.tenant_id,
        relations={
            "node": Relation(NodeRow, ((_nodes.c.id, devices.c.node_id),)),
            "parent": Relation(DeviceRow, ((devices.c.id, devices.c.parent_id),)),
            "children": Relation(DeviceRow, ((devices.c.parent_id, devices.c.id),), many=True, order=BY_ID, size=8),
            "not_known": unknown_facts(devices.c.not_known),
            "health": Relation(
                DeviceHealthRow,
                ((_health.c.device_id, _IT_OR_ITS_WHOLE),),
                many=True,
                order=Order("since", (_health.c.since, _health.c.device_id, _health.c.source, _health.c.cause)),
            ),
            "bookings": bookings_of(devices.c.id, devices.c.node_id),
        },
        filters={
            "id": one_of(devices.c.id),
            "node_id": one_of(devices.c.node_id),
            "device_class": one_of(devices.c.device_class),
            "healthy": equal(devices.c.healthy, sa.Boolean()),
        },
    ),
)


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """Which devices; an empty tuple asks nothing."""

    ids: tuple[str, ...] = ()
    node_ids: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    healthy: bool | None = None

    def where(self) -> tuple[Where, ...]:
        """Return the query as conditions."""
        given = {"id": self.ids, "node_id": self.node_ids, "device_class": self.classes}
        found = [DEVICES.where(name, values) for name, values in given.items() if values]
        if self.healthy is not None:
            found.append(DEVICES.where("healthy", self.healthy))
        return tuple(found)
