"""Bookings written past the use case: for tests of what they keep, not of how they are made."""

from datetime import timedelta
from typing import Final

from db.database import Database
from db.identifiers import new_id

_ALLOCATION: Final = """
insert into allocations (id, tenant_id, node_id, during)
select $1, tenant_id, id, tstzrange(now() + $3::interval, null) from nodes where id = $2
"""
_BOOKING: Final = """
insert into bookings (id, tenant_id, allocation_id, node_id, device_id, during)
select $2, tenant_id, id, node_id, $3, during from allocations where id = $1
"""
_END: Final = """
update bookings set during = tstzrange(now() - interval '2 seconds', now() - interval '1 second')
where device_id = any ($1)
"""


async def book(database: Database, node_id: str, *device_ids: str, after: timedelta = timedelta()) -> None:
    """Hold devices of a node from now (or later) on, without an end."""
    allocation_id = new_id("evt")
    async with database.transaction() as tx:
        await tx.execute(_ALLOCATION, allocation_id, node_id, after)
        for device_id in device_ids:
            await tx.execute(_BOOKING, allocation_id, new_id("evt"), device_id)


async def end_bookings(database: Database, *device_ids: str) -> None:
    """End what holds these devices, a second ago."""
    async with database.transaction() as tx:
        await tx.execute(_END, list(device_ids))
