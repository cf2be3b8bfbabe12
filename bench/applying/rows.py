"""The rows that applying writes: which tables get new ones, which columns of which rows change, and their checksums."""

from collections.abc import Mapping
from typing import Final

import asyncpg

INSERTED: Final = ("inventory_snapshots", "devices", "device_health", "node_conditions", "node_image_cache", "outbox")
"""Each has a `node_id`."""

UPDATED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "nodes": (
        "id",
        (
            "inventory_labels",
            "no_schedule_reasons",
            "hardware_key",
            "hardware_key_trusted",
            "hardware_conflict",
            "hardware_evidence",
            "fingerprint",
        ),
    ),
    "node_inventory": (
        "node_id",
        (
            "applied",
            "applied_digest",
            "applied_at",
            "snapshot_id",
            "replan",
            "held_by",
            "contested",
            "due_at",
            "gpu_models_version",
            "failed",
            "failed_at",
            "error",
        ),
    ),
}
"""By table: its key, and the columns that applying writes."""

_TABLES: Final = "select tablename from pg_tables where schemaname = 'public' order by tablename"
# A sum does not depend on the order in which rows lie.
_SUM: Final = "select count(*) || ' rows, ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) from {} t"


async def checksums(dsn: str) -> dict[str, str]:
    """Return for every table how many rows it has, and a checksum of all their columns."""
    connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(dsn, command_timeout=600)
    try:
        names = [row[0] for row in await connection.fetch(_TABLES)]
        return {name: await connection.fetchval(_SUM.format(name)) for name in names}
    finally:
        await connection.close()
