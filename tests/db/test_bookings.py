"""What is held, what is held only later, and what is held no more."""

from datetime import timedelta

from db.bookings import booked_of_nodes
from db.database import Database
from domain.ids import NodeId
from tests.support.booking import book, end_bookings
from tests.support.server import RunningServer, hello


async def test_what_has_not_ended_on_the_nodes_asked_for_is_booked_now_or_for_later(
    database: Database, server: RunningServer
) -> None:
    ours, other = [NodeId(await hello(server.agent, name)) for name in ("ours", "other")]
    await book(database, ours, "GPU-1", "GPU-2")
    await book(database, ours, "GPU-3", after=timedelta(hours=1))
    await book(database, other, "GPU-4")
    await end_bookings(database, "GPU-2")
    async with database.transaction() as tx:
        found = await booked_of_nodes(tx, [ours, other])
        assert await booked_of_nodes(tx, []) == {}
    live = {node_id: {each.device_id: each.begins_at is None for each in of_node} for node_id, of_node in found.items()}
    assert live == {ours: {"GPU-1": True, "GPU-3": False}, other: {"GPU-4": True}}
