"""Where hardware was seen last: the node that no longer has it, until another does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from db.connections import Row
from db.database import Transaction
from domain.ids import DeviceId, NodeId, SnapshotId, TenantId

FORGOTTEN_MAX: Final = 10_000
_NOTE: Final = """
insert into device_departures (device_id, tenant_id, node_id, snapshot_id)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])
on conflict (device_id) do update set tenant_id = excluded.tenant_id, node_id = excluded.node_id,
    snapshot_id = excluded.snapshot_id, at = now()
"""
_TAKE: Final = """
delete from device_departures where device_id = any ($1) returning device_id, tenant_id, node_id, snapshot_id
"""
_FORGET: Final = """
delete from device_departures where device_id in (
    select device_id from device_departures where at < $1 order by at limit $2 for update skip locked
)
"""


@dataclass(frozen=True, slots=True)
class Departure:
    """A device that left a node, with the snapshot in which it was gone."""

    device_id: DeviceId
    tenant_id: TenantId
    node_id: NodeId
    snapshot_id: SnapshotId


async def note_departures(tx: Transaction, departures: Sequence[Departure]) -> None:
    """Note what left its node, in one statement."""
    if departures:
        await tx.execute(
            _NOTE,
            [each.device_id for each in departures],
            [each.tenant_id for each in departures],
            [each.node_id for each in departures],
            [each.snapshot_id for each in departures],
        )


async def take_departures(tx: Transaction, device_ids: Sequence[DeviceId]) -> list[Row]:
    """Return where these devices had left, of whatever tenant, and forget it: they are somewhere again."""
    return await tx.fetch(_TAKE, list(device_ids)) if device_ids else []


async def forget_departures(tx: Transaction, before: datetime) -> None:
    """Forget the oldest of what left before a time."""
    await tx.execute(_FORGET, before, FORGOTTEN_MAX)
