"""Reading the fleet: lists, objects by id, and what belongs to them, each in one statement for all siblings."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select

from db import conditions, fleet, snapshots
from db import devices as device_store
from db import nodes as node_store
from db.database import Row
from db.devices import DeviceQuery
from db.events import feed_cursor
from db.nodes import NodeQuery
from db.paging import Order
from domain import cursor
from domain.access import Permission, Principal
from domain.errors import InvalidInput, NotFound, Unauthenticated
from domain.ids import TenantId, has_prefix
from domain.texts import given_text, required_text, storable_time
from resolvers.connections import Children, Connection, asked_page, child_connection, connection
from resolvers.context import Context

LIST_FILTER_MAX: Final = 1000


async def nodes(context: Context, query: NodeQuery, order: Order, first: int | None, after: str | None) -> Connection:
    """List the tenant's nodes."""
    tenant_id = context.require(Permission.READ)
    refuse_wide_filter(*query.lists(), text=query.text)
    select = node_store.SELECT_NODES.where(*query.conditions(tenant_id))
    return await connection(context, "nodes", select, asked_page("nodes", order, first, after))


async def devices(context: Context, query: DeviceQuery, first: int | None, after: str | None) -> Connection:
    """List the tenant's devices."""
    tenant_id = context.require(Permission.READ)
    refuse_wide_filter(query.ids, query.node_ids, query.classes)
    select = device_store.SELECT_DEVICES.where(*query.conditions(tenant_id))
    return await connection(context, "devices", select, asked_page("devices", device_store.BY_ID, first, after))


async def sites(context: Context, first: int | None, after: str | None) -> Connection:
    """List the tenant's sites."""
    select = fleet.SELECT_SITES.where(fleet.sites.c.tenant_id == context.require(Permission.READ))
    return await connection(context, "sites", select, asked_page("sites", fleet.SITES_BY_ID, first, after))


async def pools(context: Context, first: int | None, after: str | None) -> Connection:
    """List the tenant's pools."""
    select = fleet.SELECT_POOLS.where(fleet.pools.c.tenant_id == context.require(Permission.READ))
    return await connection(context, "pools", select, asked_page("pools", fleet.POOLS_BY_ID, first, after))


async def node(context: Context, node_id: str) -> Row:
    """Return a node of the tenant; raises NotFound."""
    return _found(await node_or_none(context, node_id), "node", node_id)


async def device(context: Context, device_id: str) -> Row:
    """Return a device of the tenant; raises NotFound."""
    return _found(await device_or_none(context, device_id), "device", device_id)


async def any_object(context: Context, object_id: str) -> Row:
    """Return whatever of the tenant has this id (Relay's `node`); raises NotFound."""
    readers: tuple[tuple[Any, Callable[[Context, str], Awaitable[Row | None]]], ...] = (
        ("node", node_or_none),
        ("inv", snapshot_or_none),
        ("site", site_or_none),
        ("pool", pool_or_none),
    )
    read = next((reader for prefix, reader in readers if has_prefix(object_id, prefix)), device_or_none)
    return _found(await read(context, object_id), "object", object_id)


async def node_or_none(context: Context, node_id: str | None) -> Row | None:
    """Return a node of the tenant, if there is one."""
    return await _by_id(context, "node", node_store.SELECT_NODES, node_store.nodes, node_id)


async def device_or_none(context: Context, device_id: str | None) -> Row | None:
    """Return a device of the tenant, if there is one."""
    return await _by_id(context, "device", device_store.SELECT_DEVICES, device_store.devices, device_id)


async def snapshot_or_none(context: Context, snapshot_id: str | None) -> Row | None:
    """Return a snapshot of the tenant, if there is one."""
    return await _by_id(context, "snapshot", snapshots.SELECT_SNAPSHOTS, snapshots.snapshots, snapshot_id)


async def site_or_none(context: Context, site_id: str | None) -> Row | None:
    """Return a site of the tenant, if there is one."""
    return await _by_id(context, "site", fleet.SELECT_SITES, fleet.sites, site_id)


async def pool_or_none(context: Context, pool_id: str | None) -> Row | None:
    """Return a pool of the tenant, if there is one."""
    return await _by_id(context, "pool", fleet.SELECT_POOLS, fleet.pools, pool_id)


async def _by_id(context: Context, kind: str, select: Select[Any], table: Any, object_id: str | None) -> Row | None:  # noqa: ANN401 - a table
    tenant_id = context.require(Permission.READ)
    if object_id is None or "\0" in object_id:
        return None

    async def load(ids: list[str]) -> list[Row | None]:
        statement = select.where(table.c.tenant_id == tenant_id, table.c.id == node_store.any_of(ids))
        rows = {row.id: row for row in await context.reader.fetch(statement)}
        return [rows.get(found) for found in ids]

    row: Row | None = await context.load((kind, "id"), load, object_id)
    return row


async def node_devices(
    context: Context, node_id: str, device_class: str | None, first: int | None, after: str | None
) -> Connection:
    """List a node's devices, of one class when given."""
    select = device_store.SELECT_DEVICES.where(device_store.devices.c.tenant_id == context.require(Permission.READ))
    if device_class is not None:
        select = select.where(device_store.devices.c.device_class == device_class)
    children = Children("devices", select, device_store.devices.c.node_id, device_class)
    return await child_connection(context, children, node_id, asked_page("devices", device_store.BY_ID, first, after))


async def node_snapshots(context: Context, node_id: str, first: int | None, after: str | None) -> Connection:
    """List a node's snapshots, newest first."""
    select = snapshots.SELECT_SNAPSHOTS.where(snapshots.snapshots.c.tenant_id == context.require(Permission.READ))
    children = Children("snapshots", select, snapshots.snapshots.c.node_id)
    page = asked_page("snapshots", snapshots.NEWEST_FIRST, first, after)
    return await child_connection(context, children, node_id, page)


async def site_nodes(context: Context, site_id: str, first: int | None, after: str | None) -> Connection:
    """List a site's nodes."""
    children = Children("nodes", _tenant_nodes(context), node_store.nodes.c.site_id, "site")
    return await child_connection(context, children, site_id, asked_page("nodes", node_store.BY_ID, first, after))


async def pool_nodes(context: Context, pool_id: str, first: int | None, after: str | None) -> Connection:
    """List a pool's nodes."""
    children = Children("nodes", _tenant_nodes(context), node_store.nodes.c.pool_id, "pool")
    return await child_connection(context, children, pool_id, asked_page("nodes", node_store.BY_ID, first, after))


def _tenant_nodes(context: Context) -> Select[Any]:
    tenant_id: TenantId = context.require(Permission.READ)
    return node_store.SELECT_NODES.where(node_store.nodes.c.tenant_id == tenant_id)


async def node_conditions(context: Context, node_id: str) -> Sequence[Row]:
    """Return a node's conditions, by type."""
    tenant_id = context.require(Permission.READ)

    async def load(ids: list[str]) -> list[Sequence[Row]]:
        found: dict[str, list[Row]] = {node_id: [] for node_id in ids}
        for row in await conditions.conditions_of_nodes(context.reader, tenant_id, ids):
            found[row.node_id].append(row)
        return [found[node_id] for node_id in ids]

    rows: Sequence[Row] = await context.load("conditions", load, node_id)
    return rows


async def latest_snapshot(context: Context, node_id: str) -> Row | None:
    """Return a node's newest snapshot."""
    tenant_id = context.require(Permission.READ)

    async def load(ids: list[str]) -> list[Row | None]:
        rows = await snapshots.latest_snapshots(context.reader, tenant_id, ids)
        return [rows.get(node_id) for node_id in ids]

    row: Row | None = await context.load("latest snapshot", load, node_id)
    return row


async def snapshot_at(context: Context, node_id: str, time: datetime) -> Row | None:
    """Return the newest snapshot that a node had at that time."""
    tenant_id = context.require(Permission.READ)
    storable_time("time", time)

    async def load(ids: list[str]) -> list[Row | None]:
        rows = await snapshots.snapshots_as_of(context.reader, tenant_id, ids, time)
        return [rows.get(node_id) for node_id in ids]

    row: Row | None = await context.load(("snapshot at", time), load, node_id)
    return row


async def inventory_status(context: Context, node_id: str) -> Row:
    """Return where a node's inventory stands."""
    tenant_id = context.require(Permission.READ)

    async def load(ids: list[str]) -> list[Row]:
        rows = await node_store.inventory_of_nodes(context.reader, tenant_id, ids)
        return [rows[node_id] for node_id in ids]

    row: Row = await context.load("inventory", load, node_id)
    return row


async def here(context: Context) -> str:
    """Return the feed cursor that this operation reads at."""
    context.require(Permission.READ)
    return cursor.encode_feed(await feed_cursor(context.reader))


def viewer(context: Context) -> Principal:
    """Return who asks."""
    context.require(Permission.READ)
    if context.principal is None:
        raise Unauthenticated("no token")
    return context.principal


def refuse_wide_filter(*lists: Sequence[str], text: str | None = None) -> None:
    """Raise InvalidInput for a filter beyond its bounds."""
    for values in lists:
        if len(values) > LIST_FILTER_MAX:
            raise InvalidInput(f"filter: {len(values)} values; at most {LIST_FILTER_MAX} are taken")
        for value in values:
            required_text("filter", value)
    given_text("filter.text", text or None)


def _found(row: Row | None, kind: str, object_id: str) -> Row:
    if row is None:
        raise NotFound(f"no {kind} {object_id!r}")
    return row
