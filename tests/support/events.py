"""Events of a type that nothing else writes, numbered, to see that each comes once and in order."""

from collections.abc import Iterable

from db.database import Database
from db.events import NewEvent, write_events

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
