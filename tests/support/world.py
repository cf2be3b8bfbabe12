"""A small, rich world in one database: two tenants whose names and identities overlap, and one with broken rows.

What is written is the same in every run, but for what one node reported through the API.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlmodel import SQLModel

from db.access import ensure_tenant
from db.database import Database, Transaction
from db.tables import (
    AcceptanceRow,
    AllocationRow,
    BookingRow,
    CachedImageRow,
    CertificateRow,
    CommandRow,
    ConditionRow,
    DeviceHealthRow,
    DeviceRow,
    EventRow,
    LivenessRow,
    NodeInventoryRow,
    NodeRow,
    PoolRow,
    RemediationRunRow,
    SectionRow,
    SiteRow,
    SnapshotRow,
    table_of,
)
from domain.ids import TenantId
from tests.support.documents import Given, example
from tests.support.server import report, running_server
from tests.support.world_broken import broken_rows
from tests.support.world_fleet import (
    CONNECTED,
    Rows,
    an_id,
    certificate_rows,
    condition_rows,
    device_rows,
    health_rows,
    liveness_rows,
    node_rows,
    place_rows,
)
from tests.support.world_history import event_rows, inventory_rows, snapshot_rows, stored_sections
from tests.support.world_holdings import (
    acceptance_rows,
    allocation_rows,
    booking_rows,
    command_rows,
    hardware_key,
    image_rows,
    run_rows,
)

OURS, THEIRS, BROKEN = "ours", "theirs", "broken"
_BASES: Final = {OURS: 1_000, THEIRS: 100_000, BROKEN: 200_000}
_NODES: Final = {OURS: 15, THEIRS: 4}
_ROW_CLASSES: Final[Mapping[str, type[SQLModel]]] = {
    "sites": SiteRow,
    "pools": PoolRow,
    "nodes": NodeRow,
    "node_liveness": LivenessRow,
    "node_certificates": CertificateRow,
    "node_conditions": ConditionRow,
    "devices": DeviceRow,
    "device_health": DeviceHealthRow,
    "allocations": AllocationRow,
    "bookings": BookingRow,
    "node_image_cache": CachedImageRow,
    "commands": CommandRow,
    "acceptance_attempts": AcceptanceRow,
    "remediation_runs": RemediationRunRow,
    "inventory_sections": SectionRow,
    "inventory_snapshots": SnapshotRow,
    "node_inventory": NodeInventoryRow,
    "events": EventRow,
}


def base_of(tenant: str) -> int:
    """Return the number from which a tenant's ids are counted (`tests.support.world_fleet.an_id`)."""
    return _BASES[tenant]


@dataclass(frozen=True, slots=True)
class World:
    """What the world holds, for those who ask for it: ids of every tenant by table, ours first."""

    tenants: Mapping[str, TenantId]
    ids: Mapping[str, tuple[str, ...]]
    digests: tuple[str, ...]


async def make_world(database: Database) -> World:
    """Fill a migrated database."""
    async with database.transaction() as tx:
        tenants = {
            name: await ensure_tenant(tx, TenantId(an_id("tenant", base)), name) for name, base in _BASES.items()
        }
    await _report(database)
    async with database.transaction() as tx:
        head = int(await tx.value("select position from feed_head"))
        for name in (OURS, THEIRS):
            for table, rows in _of_tenant(tenants[name], _BASES[name], _NODES[name], head).items():
                await _insert(tx, table, rows)
            head = int(await tx.value("select max(position) from events"))
        for table, rows in broken_rows(
            tenants[BROKEN], _BASES[BROKEN], head, await _owned(tx, tenants[THEIRS])
        ).items():
            await _insert(tx, table, rows)
        await tx.execute("update feed_head set position = (select max(position) from events)")
        return World(tenants, await _ids(tx), await _digests(tx))


def _of_tenant(tenant_id: str, base: int, count: int, head: int) -> dict[str, Rows]:
    sites, pools = place_rows(tenant_id, base)
    nodes = node_rows(tenant_id, base, count, sites, pools)
    devices, snapshots = device_rows(nodes), snapshot_rows(nodes, base)
    allocations, commands = allocation_rows(nodes, base), command_rows(nodes, base)
    for number, node in enumerate(nodes):
        node.update(hardware_key(base + number))
    return {
        "sites": sites,
        "pools": pools,
        "nodes": nodes,
        "node_liveness": liveness_rows(nodes),
        "node_certificates": certificate_rows(nodes),
        "node_conditions": condition_rows(nodes),
        "devices": devices,
        "device_health": health_rows(devices),
        "allocations": allocations,
        "bookings": booking_rows(allocations, devices, base),
        "node_image_cache": image_rows(nodes),
        "commands": commands,
        "acceptance_attempts": acceptance_rows(nodes, commands),
        "remediation_runs": run_rows(nodes, base),
        "inventory_sections": stored_sections(nodes[:3]),
        "inventory_snapshots": snapshots,
        "node_inventory": inventory_rows(nodes),
        "events": event_rows(tenant_id, nodes, snapshots, devices, base, head),
    }


async def _report(database: Database) -> None:
    """Let one node report twice, as agents do."""
    async with running_server(database) as server:
        for given in (Given.LEAST, Given.FULL):
            documents = {name: example(name, given) for name in ("os", "cpu", "gpus", "nics", "disks")}
            await report(server.agent, "reported", documents)
    async with database.transaction() as tx:
        # Its agent is heard for as long as the test lasts.
        await tx.execute("update node_liveness set last_seen_at = $1::text::timestamptz", CONNECTED)


async def _insert(tx: Transaction, table: str, rows: Rows) -> None:
    """Insert rows in one statement; a column that some rows leave out has its default in none."""
    if not rows:
        return
    known = table_of(_ROW_CLASSES[table])
    names = [name for name in known.c.keys() if name in rows[0]]  # noqa: SIM118 - columns, not their names
    given = sa.func.jsonb_populate_recordset(sa.literal_column(f"null::{table}"), sa.literal_column("$1::jsonb"))
    columns: list[sa.ColumnElement[Any]] = [sa.literal_column(f'"{name}"') for name in names]
    await tx.execute(str(sa.insert(known).from_select(names, sa.select(*columns).select_from(given))), rows)


async def _owned(tx: Transaction, tenant_id: TenantId) -> Mapping[str, str]:
    """Return one object of each kind that this tenant owns."""
    return {
        table: str(await tx.value(f"select min(id) from {table} where tenant_id = $1", tenant_id))  # noqa: S608 - ours
        for table in ("sites", "nodes", "devices", "allocations", "inventory_snapshots", "commands")
    }


async def _ids(tx: Transaction) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for table in ("sites", "pools", "nodes", "devices", "inventory_snapshots", "tenants"):
        owner = "id" if table == "tenants" else "tenant_id"
        ours_first = f"select id from {table} order by {owner}, id"  # noqa: S608 - names of ours
        found[table] = tuple(row.id for row in await tx.fetch(ours_first))
    return found


async def _digests(tx: Transaction) -> tuple[str, ...]:
    rows: list[Any] = await tx.fetch("select distinct digest from inventory_snapshots order by digest")
    return tuple(row.digest for row in rows)
