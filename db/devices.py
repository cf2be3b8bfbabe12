"""Devices: planned ones in, rows out."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import asyncpg
import sqlalchemy as sa

from db.connections import Row
from db.database import Transaction
from db.tables import DeviceRow, NodeRow, table_of
from db.tables.columns import JSONB
from db.views.plan import compile_statement
from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.ids import DeviceId, NodeId

devices: Final = table_of(DeviceRow)
nodes: Final = table_of(NodeRow)
_OF_NODES = "select * from devices where node_id = any ($1) order by node_id, id"
_OWNERS = "select id, node_id, tenant_id, device_class from devices where id = any ($1)"
_DELETE = "delete from devices where id = any ($1) and node_id = any ($2)"
_FACTS: Final = tuple(field.name for field in fields(Device))


# Devices given as JSON, each of its node's tenant.
_GIVEN: Final = (
    sa.func.jsonb_to_recordset(sa.bindparam("v0", type_=JSONB))
    .table_valued(*(sa.column(name, devices.c[name].type) for name in _FACTS))
    .render_derived(name="given", with_types=True)
)
# Not one statement for both: `on conflict` costs a row that is new, as all are of a first inventory, a third more.
_ADD: Final = compile_statement(
    sa.insert(devices).from_select(
        ["tenant_id", *_FACTS],
        sa.select(nodes.c.tenant_id, *(_GIVEN.c[name] for name in _FACTS)).join_from(
            _GIVEN, nodes, nodes.c.id == _GIVEN.c.node_id
        ),
    )
)
_CHANGE: Final = compile_statement(
    sa.update(devices)
    .values({name: _GIVEN.c[name] for name in _FACTS if name not in {"id", "node_id"}} | {"updated_at": sa.func.now()})
    .where(devices.c.id == _GIVEN.c.id, devices.c.node_id == _GIVEN.c.node_id)
)


class DeviceTaken(Exception):  # noqa: N818 - an outcome of a race, not an error
    """Another node took one of the devices meanwhile: the transaction is undone, and its caller decides anew."""


def device_of(row: Row) -> Device:
    """Return a row as the domain sees it."""
    facts = {name: row[name] for name in _FACTS}
    return Device(
        **facts
        | {
            "device_class": DeviceClass(row.device_class),
            "nvlink_peers": tuple(row.nvlink_peers),
            "not_known": {fact: Availability(why) for fact, why in row.not_known.items()},
        }
    )


async def devices_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return the devices of many nodes."""
    return await tx.fetch(_OF_NODES, list(node_ids))


async def owners_of(tx: Transaction, device_ids: Sequence[DeviceId]) -> list[Row]:
    """Return (id, node_id, tenant_id, device_class) of devices of whatever tenant: each has one owner in the world."""
    return await tx.fetch(_OWNERS, list(device_ids))


async def add_devices(tx: Transaction, new: Sequence[Device]) -> None:
    """Insert devices in one statement; raises DeviceTaken."""
    if not new:
        return
    try:
        await tx.execute(_ADD.text, *_ADD.arguments([new]))
    except asyncpg.UniqueViolationError as error:
        raise DeviceTaken from error


async def change_devices(tx: Transaction, changed: Sequence[Device]) -> None:
    """Write devices that their nodes have already, in one statement."""
    if changed:
        await tx.execute(_CHANGE.text, *_CHANGE.arguments([changed]))


async def delete_devices(tx: Transaction, owned: Sequence[tuple[NodeId, DeviceId]]) -> None:
    """Delete devices that their nodes no longer have."""
    if owned:
        await tx.execute(_DELETE, [device for _, device in owned], sorted({node for node, _ in owned}))
