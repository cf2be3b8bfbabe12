"""The PostgreSQL that a bench starts for itself; it ends with the bench, and its data with it."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg
import psutil

from bench.stand.progress import say
from db.embedded import EmbeddedPostgres

# A server of its own on a machine of this size; everything that makes writes durable is as it is by default.
_SETTINGS: Final = {
    "shared_buffers": "1GB",
    "effective_cache_size": "4GB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "track_io_timing": "off",
}


@dataclass(frozen=True, slots=True)
class OwnPostgres:
    """A running server, and the first of its processes."""

    server: EmbeddedPostgres
    postmaster: psutil.Process

    def dsn(self, database: str) -> str:
        """Return where a database is reached."""
        return self.server.dsn(database)

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run one statement outside a transaction, such as that which makes a database."""
        asyncio.run(_executed(self.dsn(database), statement))


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Make a folder that lasts as long as the block."""
    # Not the checkout: the unprivileged user whom root's PostgreSQL runs as must be able to enter it.
    folder = Path(tempfile.mkdtemp(prefix=f"fg-{name}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_postgres(folder: Path) -> Iterator[OwnPostgres]:
    """Start PostgreSQL in a folder; raises EmbeddedPostgresError."""
    say("starting PostgreSQL …")
    base = folder / "pg"
    with EmbeddedPostgres(base, _SETTINGS) as server:
        first = int((base / "data" / "postmaster.pid").read_text().splitlines()[0])
        yield OwnPostgres(server, psutil.Process(first))


async def _executed(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
