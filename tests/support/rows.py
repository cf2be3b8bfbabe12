"""Every row of a database, byte by byte and with the transaction that wrote it: what did not change was not written."""

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


async def written_rows(tx: Transaction) -> Rows:
    """Return all rows by table, each with its writer."""
    found: Rows = {name: [] for name in metadata.tables}
    for row in await tx.fetch(_ALL):
        found[row.name].append(row.row)
    return found


_EACH: Final = "select '{0}' as name, xmin::text || ' ' || t::text as row from {0} t"
_ALL: Final = " union all ".join(_EACH.format(name) for name in metadata.tables) + " order by 1, 2"
