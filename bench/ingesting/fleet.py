"""What is posted: the reports of a database's nodes, as agents write them."""

import asyncio
import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import asyncpg

from agent.wire import INGEST, RECORD_HASHES
from db.database import Database
from domain.access import Role
from domain.ids import TenantId
from web.authentication import issue_token

TOKEN: Final = "agents-of-the-bench"  # noqa: S105 - of a server that lives as long as the bench
_REPORTED: Final = "select node_id, reported from node_inventory order by node_id"
_CONTENTS: Final = "select node_id, name, sha256, content from inventory_sections where node_id = any ($1)"
_UNREPORTED: Final = (
    "truncate inventory_sections",
    "update node_inventory set reported = null, reported_at = null, missing = '{}'",
    "vacuum full analyze node_inventory",
)


def add_token(dsn: str) -> None:
    """Let the bench speak for the nodes."""

    async def add() -> None:
        database = await Database.connect(dsn)
        try:
            async with database.transaction() as tx:
                tenant_id = await tx.value("select id from tenants where name = 'bench'")
                await issue_token(tx, TenantId(tenant_id), Role.AGENT, "bench", text=TOKEN)
        finally:
            await database.close()

    asyncio.run(add())


async def write_heartbeats(dsn: str, file: Path, batch: int) -> None:
    """Write the bodies of unchanged reports, so many nodes in each."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(_REPORTED)
    finally:
        await connection.close()
    entries = [{"nodeId": row["node_id"], "hashes": _hashes(row["reported"])} for row in rows]
    _write(file, RECORD_HASHES, entries, batch)


async def write_sections(dsn: str, file: Path, batch: int) -> None:
    """Write the bodies of the sections that a database has, so many nodes in each."""
    connection = await asyncpg.connect(dsn)
    try:
        ids = [row["node_id"] for row in await connection.fetch(_REPORTED)]
        found: dict[str, list[dict[str, str]]] = {node_id: [] for node_id in ids}
        for row in await connection.fetch(_CONTENTS, ids):
            content = base64.b64encode(row["content"]).decode()
            found[row["node_id"]].append({"name": row["name"], "sha256": row["sha256"], "content": content})
    finally:
        await connection.close()
    _write(file, INGEST, [{"nodeId": node_id, "sections": each} for node_id, each in found.items()], batch)


def forget_reports(dsn: str) -> None:
    """Leave the nodes of a database as after a hello without hashes."""

    async def forget() -> None:
        connection = await asyncpg.connect(dsn, command_timeout=600)
        try:
            for statement in _UNREPORTED:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(forget())


def _hashes(reported: str) -> list[dict[str, str]]:
    return [{"name": name, "sha256": sha256} for name, sha256 in json.loads(reported).items()]


def _write(file: Path, query: str, entries: Sequence[dict[str, Any]], batch: int) -> None:
    groups: Iterator[Sequence[dict[str, Any]]] = (entries[i : i + batch] for i in range(0, len(entries), batch))
    bodies = (json.dumps({"query": query, "variables": {"entries": list(group)}}) for group in groups)
    file.write_text("\n".join(bodies))
