"""Devices: planned ones in, rows out."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from db.connections import Row
from db.database import Transaction
from db.tables import DeviceRow, NodeRow, table_of
from db.tables.columns import JSONB
from db.views.plan import Compiled, compile_statement
from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.ids import DeviceId, NodeId

devices: Final = table_of(DeviceRow)
nodes: Final = table_of(NodeRow)
_OF_NODES = "select * from devices where node_id = any ($1) order by node_id, id"
_OWNERS = "select id, node_id, tenant_id from devices where id = any ($1)"
_DELETE = "delete from devices where id = any ($1) and node_id = any ($2)"
_FACTS: Final = tuple(field.name for field in fields(Device))


def _save_statement() -> Compiled:
    """Write devices given as JSON, each for its node's tenant."""
    given = (
        sa.func.jsonb_to_recordset(sa.bindparam("v0", type_=JSONB))
        .table_valued(*(sa.column(name, devices.c[name].type) for name in _FACTS))
        .render_derived(name="given", with_types=True)
    )
    rows = sa.select(nodes.c.tenant_id, *(given.c[name] for name in _FACTS), sa.func.now()).join_from(
        given, nodes, nodes.c.id == given.c.node_id
    )
    names = ["tenant_id", *_FACTS, "updated_at"]
    insert = postgresql.insert(devices).from_select(names, rows)
    return compile_statement(
        insert.on_conflict_do_update(
            index_elements=[devices.c.id],
            set_={name: insert.excluded[name] for name in names if name != "id"},
            where=devices.c.node_id == insert.excluded.node_id,
        ).returning(devices.c.id)
    )


_SAVE: Final = _save_statement()


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
    """Return (id, node_id, tenant_id) of these devices, of whatever tenant: a device has one owner in the world."""
    return await tx.fetch(_OWNERS, list(device_ids))


async def save_devices(tx: Transaction, planned: Sequence[Device]) -> int:
    """Insert or update devices in one statement; returns how many were written.

    Fewer than given means that another node took one of the ids meanwhile; the caller decides anew.
    """
    if not planned:
        return 0
    return len(await tx.fetch(_SAVE.text, *_SAVE.arguments([planned])))


async def delete_devices(tx: Transaction, owned: Sequence[tuple[NodeId, DeviceId]]) -> None:
    """Delete devices that their nodes no longer have."""
    if owned:
        await tx.execute(_DELETE, [device for _, device in owned], sorted({node for node, _ in owned}))
