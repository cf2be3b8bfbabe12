"""Devices: planned ones in, rows out."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from db.connections import Row
from db.database import Transaction
from db.tables import DeviceRow, table_of
from db.tables.columns import JSONB
from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.ids import DeviceId, NodeId, TenantId

devices: Final = table_of(DeviceRow)
_OF_NODES = "select * from devices where node_id = any ($1) order by node_id, id"
_OWNERS = "select id, node_id, tenant_id from devices where id = any ($1)"
_DELETE = "delete from devices where id = any ($1) and node_id = any ($2)"


_FACTS: Final = tuple(field.name for field in fields(Device))


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


def row_of(tenant_id: TenantId, device: Device) -> dict[str, Any]:
    """Return a device as the table's columns, by name."""
    return {"tenant_id": tenant_id, **{name: getattr(device, name) for name in _FACTS}}


async def devices_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return the devices of many nodes."""
    return await tx.fetch(_OF_NODES, list(node_ids))


async def owners_of(tx: Transaction, device_ids: Sequence[DeviceId]) -> list[Row]:
    """Return (id, node_id, tenant_id) of these devices, of whatever tenant: a device has one owner in the world."""
    return await tx.fetch(_OWNERS, list(device_ids))


async def save_devices(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> int:
    """Insert or update devices in one statement; returns how many were written.

    Fewer than given means that another node took one of the ids meanwhile; the caller decides anew.
    """
    if not rows:
        return 0
    columns = [column for column in devices.c if column.name != "updated_at"]
    names = [column.name for column in columns]
    given = (
        sa.func.jsonb_to_recordset(sa.bindparam("rows", list(rows), type_=JSONB))
        .table_valued(*(sa.column(column.name, column.type) for column in columns))
        .render_derived(name="given", with_types=True)
    )
    insert = postgresql.insert(devices).from_select(
        [*names, "updated_at"], sa.select(*(given.c[name] for name in names), sa.func.now())
    )
    changed = {name: insert.excluded[name] for name in [*names, "updated_at"] if name != "id"}
    written = await tx.fetch(
        insert.on_conflict_do_update(
            index_elements=[devices.c.id], set_=changed, where=devices.c.node_id == insert.excluded.node_id
        ).returning(devices.c.id)
    )
    return len(written)


async def delete_devices(tx: Transaction, owned: Sequence[tuple[NodeId, DeviceId]]) -> None:
    """Delete devices that their nodes no longer have."""
    if owned:
        await tx.execute(_DELETE, [device for _, device in owned], sorted({node for node, _ in owned}))
