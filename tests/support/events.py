"""Events of a type that nothing else writes, numbered, to see that each comes once and in order."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from db.database import Database
from db.events import NewEvent, forget_events, write_events
from tests.support.waiting import until_seen

FOLLOW = """
subscription ($after: Cursor) { events(filter: {type: "test.changed"}, after: $after) {
  cursor ... on OtherEvent { payload }
} }
"""


async def commit_numbers(database: Database, tenant_id: str, numbers: Iterable[int], *, bulk: int = 0) -> None:
    """Commit an event for each number, with so many bytes besides."""
    for number in numbers:
        async with database.transaction() as tx:
            payload = {"n": number, "bulk": "x" * bulk}
            await write_events(tx, [NewEvent(tenant_id, None, "test.changed", payload)])  # type: ignore[arg-type]


async def forget_all(database: Database) -> int:
    """Have the whole log forgotten, once nobody reads it for a moment; returns the floor."""
    floor: int | None = None

    async def forgotten() -> bool:
        nonlocal floor
        async with database.transaction() as tx:
            floor = await forget_events(tx, datetime.now(UTC) + timedelta(hours=1))
        return floor is not None

    await until_seen(forgotten)
    assert floor is not None
    return floor
