"""What stands in the database, read at once, and everything in it made older."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSTZRANGE

from db.database import Database
from db.tables import metadata
from tests.support.rows import HISTORY

Found = Mapping[str, Any]
_READ: Final = {
    "nodes": "select * from nodes order by id",
    "pools": "select * from pools",
    "faults": "select * from node_faults order by node_id, boot_id, key",
    "health": "select * from device_health order by device_id, source, cause",
    "devices": "select * from devices order by id",
    "conditions": "select * from node_conditions order by node_id, type",
    "runs": "select * from remediation_runs order by id",
    "commands": "select * from commands order by node_id, sequence",
    "attempts": "select * from acceptance_attempts order by node_id, attempt",
    "inventory": """
        select node_id, applied = reported and missing = '{}' and not replan as is_applied,
            coalesce(applied_digest like 'advisory:%', false) as is_advisory, reported_at
        from node_inventory
    """,
    "held": """
        select id, node_id, shard_id, lower(during) <= clock_timestamp() as is_now,
            lower(during) <= clock_timestamp() + interval '10 minutes' as is_soon
        from allocations where not isempty(during) and coalesce(upper(during), 'infinity') > clock_timestamp()
    """,
}
_EACH: Final = "'{0}', (select coalesce(jsonb_agg(to_jsonb(t)), '[]') from ({1}) t)"
_STATE: Final = "select jsonb_build_object({})".format(", ".join(_EACH.format(*each) for each in _READ.items()))
_KEPT: Final = frozenset({("listening", "at")})
"""Servers go on listening."""


class State:
    """Every row that health is about."""

    def __init__(self, found: Mapping[str, list[dict[str, Any]]]) -> None:
        self.nodes = {row["id"]: row for row in found["nodes"]}
        self.pools = {row["id"]: row for row in found["pools"]}
        self.faults = found["faults"]
        self.health = found["health"]
        self.devices = {row["id"]: row for row in found["devices"]}
        self.conditions = found["conditions"]
        self.runs = found["runs"]
        self.commands = {row["id"]: row for row in found["commands"]}
        self.attempts = found["attempts"]
        self.inventory = {row["node_id"]: row for row in found["inventory"]}
        self.held = found["held"]

    def gpus(self, node_id: str) -> list[Found]:
        """Return the GPUs that a node is known to have, or had when somebody took them."""
        return [d for d in self.devices.values() if d["node_id"] == node_id and d["device_class"] == "gpu"]

    def open_runs(self, node_ids: Iterable[str]) -> list[Found]:
        """Return the runs of remediation under way."""
        among = set(node_ids)
        return [run for run in self.runs if run["finished_at"] is None and run["node_id"] in among]

    def in_pool(self, pool_id: str | None) -> list[str]:
        """Return the nodes of a pool."""
        return [node["id"] for node in self.nodes.values() if node["pool_id"] == pool_id]


def moment(text: str) -> datetime:
    """Return a time as JSON has it."""
    return datetime.fromisoformat(text)


async def read_state(database: Database) -> State:
    """Read all of it in one statement."""
    async with database.session() as session:
        return State(await session.value(_STATE))


def _older(table: sa.Table, column: "sa.Column[Any]") -> str | None:
    if table.name in HISTORY or (table.name, column.name) in _KEPT or column.computed is not None:
        return None
    if isinstance(column.type, TSTZRANGE):
        return (
            f"{column.name} = case when isempty({column.name}) then {column.name} else "
            f"tstzrange(lower({column.name}) - d, upper({column.name}) - d) end"
        )
    return f"{column.name} = {column.name} - d" if isinstance(column.type, sa.DateTime) else None


def _older_rows() -> Iterable[str]:
    # What has ended is in the way of nobody, and would be of its successor while both are moved.
    yield "delete from bookings where not isempty(during) and upper(during) <= now()"
    for table in metadata.sorted_tables:
        moved = [text for column in table.columns if (text := _older(table, column)) is not None]
        if moved:
            yield f"update {table.name} set {', '.join(moved)}".replace(" - d", " - interval '{seconds} seconds'")  # noqa: S608


_OLDER: Final = "; ".join(_older_rows())


async def let_pass(database: Database, time: timedelta) -> None:
    """Let so much time have passed: whatever was written was written earlier."""
    async with database.transaction() as tx:
        await tx.execute(_OLDER.format(seconds=time.total_seconds()))
