"""A streaming replica that queries may read from; while it is away or far behind, they read from the primary.

One loop opens it, looks at it and cuts it off: a request takes only what is open, and waits for no replica to come.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

import asyncpg
import structlog

from db.connections import POOL_SIZE_MAX, Row
from db.database import Database

LAG_SECONDS_MAX: Final = 10.0
"""How old the replica's state may be."""
LOOK_SECONDS: Final = 1.0
ANSWER_SECONDS_MAX: Final = 3.0
"""A replica that does not answer a look for so long is cut off, with all that waits for it."""
WAIT_SECONDS_MAX: Final = 1.0
"""How long a query, or a look, waits for a connection to the replica."""

# Equal on the primary and its replica, and nowhere else: transaction numbers and positions mean the same there.
_WHICH = """
select c.system_identifier, d.oid as database, v.version_num as version
from pg_control_system() c, pg_database d, alembic_version v where d.datname = current_database()
"""
_WRITTEN = "select pg_current_wal_lsn()::text"
_REPLAYED = "select pg_is_in_recovery() as is_replica, pg_last_wal_replay_lsn() >= $1::text::pg_lsn as passed"
OWN: Final = (asyncpg.QueryCanceledError, ValueError)
"""What of `db.connections.TRANSIENT` is the query's own: it took too long, or asyncpg refused an argument of it."""
# What says that the connection, and so perhaps the server, is gone.
_GONE: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.DatabaseDroppedError,
)
_log = structlog.get_logger("replica")


class Source(StrEnum):
    """Where a query is read, or why it is not read from the replica."""

    REPLICA = "replica"
    PRIMARY = "primary"
    """It asked for the primary."""
    AWAY = "away"
    BEHIND = "behind"
    """The replica is far behind, or has not seen what the client has."""
    FAILED = "failed"
    """The replica failed at the query's first statement."""


class NotAReplica(RuntimeError):  # noqa: N818 - it says what is wrong with the URL or the server
    """READ_DATABASE_URL leads to no replica of DATABASE_URL, or to one that has not replayed the schema yet."""


class ReplicaDatabase(Database):
    """The pool of a replica: who waits for it has somewhere else to go."""

    wait_seconds_max = WAIT_SECONDS_MAX

    def cut(self) -> None:
        """Close every connection at once: whatever waits for one fails."""
        self._pool.terminate()


class Replica:
    """The replica of a process; run it once."""

    def __init__(
        self,
        primary_dsn: str,
        dsn: str,
        *,
        size_max: int = POOL_SIZE_MAX,
        lag_seconds_max: float = LAG_SECONDS_MAX,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._primary_dsn = primary_dsn
        self._dsn = dsn
        self._size_max = size_max
        self._lag_seconds_max = lag_seconds_max
        self._look_seconds = look_seconds
        self._pool: ReplicaDatabase | None = None
        self._fresh_at = 0.0
        self._said = ""

    def offer(self) -> ReplicaDatabase | Source:
        """Return the replica's pool, or why it is not to be read from now."""
        if self._pool is None:
            return Source.AWAY
        is_behind = time.monotonic() - self._fresh_at > self._lag_seconds_max
        return Source.BEHIND if is_behind else self._pool

    def failed(self, error: BaseException) -> None:
        """Note that the replica failed; when its connection is gone, nobody is sent there until it is looked at."""
        if isinstance(error, _GONE) and not isinstance(error, TimeoutError | ValueError):  # a wait may be the pool's
            self._pool = None

    async def run(self) -> None:
        """Open the replica and look at it until cancelled."""
        while True:
            try:
                await self._follow()
            except Exception as error:  # noqa: BLE001 - whatever it is, the primary is read and the replica tried again
                self._say("queries read from the primary: the replica is away", _reason(error))
            await asyncio.sleep(self._look_seconds)

    async def _follow(self) -> None:
        async with (
            _opened(self._primary_dsn, 1) as primary,
            _opened(self._dsn, 1) as replica,
            _opened(self._dsn, self._size_max) as pool,
        ):
            await _refuse_another(primary, replica)
            try:
                await self._look_on(primary, replica, pool)
            finally:
                self._pool = None

    async def _look_on(self, primary: ReplicaDatabase, replica: ReplicaDatabase, pool: ReplicaDatabase) -> None:
        """Look how far the replica is: once it has what the primary had at an earlier look, it is as fresh as that."""
        while True:
            asked_at = time.monotonic()
            written = (await _ask(primary, _WRITTEN))[0]
            while not await _has_replayed(replica, written):
                if time.monotonic() - asked_at > self._lag_seconds_max:
                    self._say(
                        "queries read from the primary: the replica is behind", f"since {self._lag_seconds_max} s"
                    )
                await asyncio.sleep(self._look_seconds)
            self._fresh_at, self._pool = asked_at, pool
            self._say("queries read from the replica", "")
            await asyncio.sleep(self._look_seconds)

    def _say(self, event: str, reason: str) -> None:
        """Log a change, once."""
        if event != self._said:
            self._said = event
            _log.warning(event, reason=reason) if reason else _log.info(event)


@asynccontextmanager
async def _opened(dsn: str, size_max: int) -> AsyncIterator[ReplicaDatabase]:
    # Nothing is connected yet, nor by itself later: who asks for a connection waits for it a little.
    database = await ReplicaDatabase.connect(dsn, size_max=size_max, size_min=0)
    try:
        yield database
    finally:
        database.cut()


async def _ask(database: ReplicaDatabase, statement: str, *args: str) -> Row:
    # Not a timeout: what it cancels waits for the server once more.
    deadline = asyncio.get_running_loop().call_later(ANSWER_SECONDS_MAX, database.cut)
    try:
        async with database.session() as session:
            row = await session.first(statement, *args)
    finally:
        deadline.cancel()
    if row is None:
        raise NotAReplica("READ_DATABASE_URL leads to a database that is not ours")
    return row


async def _has_replayed(replica: ReplicaDatabase, written: str) -> bool:
    row = await _ask(replica, _REPLAYED, written)
    if not row.is_replica:
        raise NotAReplica("READ_DATABASE_URL leads to a server that is no replica, or no longer")
    return bool(row.passed)


async def _refuse_another(primary: ReplicaDatabase, replica: ReplicaDatabase) -> None:
    ours, theirs = await _ask(primary, _WHICH), await _ask(replica, _WHICH)
    if (ours.system_identifier, ours.database) != (theirs.system_identifier, theirs.database):
        raise NotAReplica("READ_DATABASE_URL leads to another database than a streaming replica of DATABASE_URL has")
    if ours.version != theirs.version:
        raise NotAReplica(f"the replica has the schema of {theirs.version} still, the primary that of {ours.version}")


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError | IndexError):
        # Not its text: half of a password may be in it, taken for the port.
        return "READ_DATABASE_URL is not a PostgreSQL URL"
    return str(error) if isinstance(error, NotAReplica) else repr(error)
