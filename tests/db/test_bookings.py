"""What is held, and what is not held yet or no more."""

from datetime import timedelta

from db.bookings import booked_devices
from db.database import Database
from domain.ids import NodeId
from tests.support.booking import book, end_bookings
from tests.support.server import RunningServer, hello


async def test_only_what_is_held_now_on_the_nodes_asked_for_is_booked(
    database: Database, server: RunningServer
) -> None:
    ours, other = [NodeId(await hello(server.agent, name)) for name in ("ours", "other")]
    await book(database, ours, "GPU-1", "GPU-2")
    await book(database, ours, "GPU-3", after=timedelta(hours=1))
    await book(database, other, "GPU-4")
    await end_bookings(database, "GPU-2")
    async with database.transaction() as tx:
        assert await booked_devices(tx, [ours]) == {"GPU-1"}
        assert await booked_devices(tx, [ours, other]) == {"GPU-1", "GPU-4"}
        assert await booked_devices(tx, []) == set()
