"""Every row of a database, byte by byte and with the transaction that wrote it: what did not change was not written."""

from collections.abc import Collection
from typing import Final

from db.database import Transaction
from db.tables import metadata

HISTORY: Final = frozenset({"inventory_sections", "inventory_snapshots", "outbox", "events", "feed_head"})
"""Tables that only grow."""
REPORTED: Final = (
    "reported",
    "reported_at",
    "missing",
    "applied",
    "applied_digest",
    "applied_at",
    "snapshot_id",
    "gpu_models_version",
)
"""Columns of `node_inventory` that say what was reported and what was made of it."""

Rows = dict[str, list[str]]


async def written_rows(tx: Transaction, *, without: Collection[str] = ()) -> Rows:
    """Return all rows by table, each with its writer."""
    found = {}
    for name in sorted(metadata.tables.keys() - set(without)):
        rows = await tx.fetch(f"select xmin::text || ' ' || t::text as row from {name} t order by 1")  # noqa: S608 - ours
        found[name] = [row.row for row in rows]
    return found
