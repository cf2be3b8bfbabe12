"""Silences made by hand: no test waits for a lease."""

from db.database import Database

_SILENT = "update node_liveness set last_seen_at = now() - make_interval(secs => $2) where node_id = any ($1)"
_LISTENED = "update listening set at = now() - make_interval(secs => $2), since = now() - make_interval(secs => $1)"


async def silence(database: Database, seconds: float, *node_ids: str) -> None:
    """Let nodes have been heard last so many seconds ago."""
    async with database.transaction() as tx:
        await tx.execute(_SILENT, list(node_ids), seconds)


async def listened(database: Database, seconds: float, *, noted_ago: float = 0) -> None:
    """Let servers have listened for so many seconds, and noted it last so long ago."""
    async with database.transaction() as tx:
        await tx.execute(_LISTENED, seconds, noted_ago)
