"""Allocations and their bookings: what nodes have to give, what is held of it, and taking and ending it.

The constraint `bookings_once_excl` is what keeps an atom from being held twice, whoever writes.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import asyncpg

from db.connections import Row
from db.database import Transaction
from db.identifiers import new_id
from db.node_changes import tell_changed
from domain.booked_atoms import Booked
from domain.ids import AllocationId, BookingId, DeviceId, NodeId, TenantId
from domain.room import Span

# Two requests of one shard wait for each other. What else takes the key waits for nothing worse.
_LOCK_SHARD: Final = "select pg_advisory_xact_lock(hashtextextended($1::text || '/' || $2::text, 20260714))"
_LOCK_NODE: Final = "select id from nodes where tenant_id = $1 and id = $2 for no key update"
# Not the time at which the transaction began: it may have waited for a release.
_NOW: Final = "select clock_timestamp()"
# The latter as the indexes have it (`db.tables.booking.ENDS`).
_TOLD: Final = ("allocations",)
_ENDS: Final = "not isempty(during) and coalesce(upper(during), 'infinity'::timestamptz)"
# Whoever plans devices may have begun before a booking that was committed meanwhile.
_BOOKED: Final = f"""
select id, node_id, device_id, case when lower(during) > clock_timestamp() then lower(during) end as begins_at
from bookings where node_id = any ($1) and {_ENDS} > clock_timestamp()
"""  # noqa: S608 - ours
_OF_SHARD: Final = f"""
select a.id, a.node_id, a.request, a.power_w,
    array(select device_id from bookings where allocation_id = a.id order by device_id) as device_ids
from allocations a where tenant_id = $1 and shard_id = $2 and {_ENDS} > clock_timestamp()
"""  # noqa: S608 - ours
_OWNERS: Final = "select id, node_id from devices where tenant_id = $1 and id = any ($2)"
_BOOKINGS: Final = f"""
select node_id, device_id, allocation_id, lower(during) as starts, upper(during) as ends
from bookings where node_id = any ($1) and {_ENDS} > now() order by node_id, device_id, during
"""  # noqa: S608
_CLAIMS: Final = f"""
select node_id, memory_gb, cpu_cores, lower(during) as starts, upper(during) as ends
from allocations where node_id = any ($1) and {_ENDS} > now()
"""  # noqa: S608
_ADD: Final = """
insert into allocations (
    id, tenant_id, node_id, shard_id, replica_id, reservation_id, memory_gb, cpu_cores, power_w, during, request
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, tstzrange($10, $11), $12)
"""
_BOOK: Final = """
insert into bookings (id, tenant_id, allocation_id, node_id, device_id, during)
select b.id, a.tenant_id, a.id, a.node_id, b.device_id, a.during
from allocations a cross join unnest($2::text[], $3::text[]) as b (id, device_id) where a.id = $1
"""
# What ends before it began was held at no time: an empty range is in nobody's way, and keeps the row.
_END: Final = f"""
with ended as (
    select id, lower(during) as starts, clock_timestamp() as at from allocations
    where tenant_id = $1 and (shard_id = $2 or replica_id = $3)
        and {_ENDS} > clock_timestamp()
    order by id for update
), freed as (
    update bookings b set during = case when e.starts < e.at then tstzrange(e.starts, e.at) else 'empty' end
    from ended e where b.allocation_id = e.id
)
update allocations a
set during = case when e.starts < e.at then tstzrange(e.starts, e.at) else tstzrange(e.at, e.at, '[]') end
from ended e where a.id = e.id returning a.id, a.node_id
"""  # noqa: S608
# With its parts, whose ids begin with its own: also those that the pool of its node does not make of it now.
_FOLLOW: Final = f"""
update bookings b set node_id = m.arrived_at
from unnest($1::text[], $2::text[], $3::text[]) m (device_id, left_node, arrived_at)
where b.node_id = m.left_node and {_ENDS} > clock_timestamp()
    and (b.device_id = m.device_id or starts_with(b.device_id, m.device_id || '/'))
"""  # noqa: S608


class AtomHeld(Exception):  # noqa: N818 - an outcome of a race, which the caller tells
    """Somebody holds one of the atoms for part of the time: the transaction is undone."""


@dataclass(frozen=True, slots=True)
class MovedDevice:
    """A device that left one node and is another's now."""

    device_id: DeviceId
    left: NodeId
    arrived_at: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAllocation:
    """An allocation to write."""

    id: AllocationId
    tenant_id: TenantId
    node_id: NodeId
    shard_id: str
    replica_id: str | None
    reservation_id: str | None
    memory_gb: int | None
    cpu_cores: int | None
    power_w: float | None
    span: Span
    device_ids: tuple[DeviceId, ...]
    request: Mapping[str, Any]


async def booked_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> dict[NodeId, list[Booked]]:
    """Return what is booked of these nodes, now or for later."""
    found: dict[NodeId, list[Booked]] = {node_id: [] for node_id in node_ids}
    for row in await tx.fetch(_BOOKED, list(node_ids)):
        found[NodeId(row.node_id)].append(Booked(BookingId(row.id), DeviceId(row.device_id), row.begins_at))
    return found


async def follow_devices(tx: Transaction, moved: Sequence[MovedDevice]) -> None:
    """Have what is booked of moved devices for later be booked where they are now."""
    if moved:
        ids, left, arrived = ([getattr(each, name) for each in moved] for name in ("device_id", "left", "arrived_at"))
        await tx.execute(_FOLLOW, ids, left, arrived)


async def lock_shard(tx: Transaction, tenant_id: TenantId, shard_id: str) -> None:
    """Let no other request of the shard be decided until this transaction ends."""
    await tx.execute(_LOCK_SHARD, tenant_id, shard_id)


async def lock_node(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> None:
    """Let nothing else be claimed of the node, nor its devices be planned anew, until this transaction ends."""
    await tx.execute(_LOCK_NODE, tenant_id, node_id)


async def present_time(tx: Transaction) -> datetime:
    """Return the database's time, by which bookings begin and end."""
    moment: datetime = await tx.value(_NOW)
    return moment


async def allocation_of_shard(tx: Transaction, tenant_id: TenantId, shard_id: str) -> Row | None:
    """Return what a shard holds or has reserved: id, node_id, device_ids, power_w and the request it was made for."""
    return await tx.first(_OF_SHARD, tenant_id, shard_id)


async def nodes_of_devices(
    tx: Transaction, tenant_id: TenantId, device_ids: Sequence[DeviceId]
) -> dict[DeviceId, NodeId]:
    """Return the node of each device that the tenant has."""
    rows = await tx.fetch(_OWNERS, tenant_id, list(device_ids))
    return {DeviceId(row.id): NodeId(row.node_id) for row in rows}


async def bookings_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return the bookings of many nodes that have not ended."""
    return await tx.fetch(_BOOKINGS, list(node_ids))


async def claims_on_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> list[Row]:
    """Return what unended allocations take of many hosts."""
    return await tx.fetch(_CLAIMS, list(node_ids))


@asynccontextmanager
async def _told() -> AsyncIterator[None]:
    try:
        yield
    except asyncpg.ExclusionViolationError as error:
        raise AtomHeld from error


async def add_allocation(tx: Transaction, new: NewAllocation) -> None:
    """Write an allocation with its bookings, all of them or none; raises AtomHeld."""
    await tx.execute(
        _ADD,
        new.id,
        new.tenant_id,
        new.node_id,
        new.shard_id,
        new.replica_id,
        new.reservation_id,
        new.memory_gb,
        new.cpu_cores,
        new.power_w,
        new.span.start,
        new.span.end,
        dict(new.request),
    )
    await tell_changed(tx, [(new.tenant_id, new.node_id)], _TOLD)
    async with _told():
        await tx.execute(_BOOK, new.id, [new_id("bkg") for _ in new.device_ids], list(new.device_ids))


async def end_allocations(
    tx: Transaction, tenant_id: TenantId, shard_id: str | None, replica_id: str | None
) -> list[AllocationId]:
    """End now what a shard or a whole replica holds or has reserved; returns the ids, none when nothing was left."""
    rows = await tx.fetch(_END, tenant_id, shard_id, replica_id)
    await tell_changed(tx, [(tenant_id, NodeId(node_id)) for node_id in sorted({row.node_id for row in rows})], _TOLD)
    return [AllocationId(row.id) for row in rows]
