"""The connections to one PostgreSQL: a pool, and how one is taken from it and given back."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import asyncpg
import orjson
from asyncpg.pool import PoolConnectionProxy

STATEMENT_SECONDS_MAX: Final = 30
IDLE_SECONDS_MAX: Final = 10
"""How long a transaction that writes may wait for its next statement: they are made of data at hand, without I/O."""
TRANSACTION_SECONDS_MAX: Final = STATEMENT_SECONDS_MAX + IDLE_SECONDS_MAX
"""How long a transaction that writes may take, where PostgreSQL keeps to it (17).

asyncpg prepares a statement and sends its values later. To PostgreSQL a process that is stopped between the two is not
idle, so that this alone frees what it holds.
"""
SNAPSHOT_SECONDS_MAX: Final = 3600
"""The same for one that reads, whose client may take its answer slowly: it locks no rows."""
_TIMED_FROM: Final = (17,)
POOL_SIZE_MAX: Final = 16
PREPARED_MAX: Final = 128
"""Statements that each connection keeps prepared; a plan of a large one takes PostgreSQL a few hundred kilobytes."""
_SERVER_SETTINGS: Final = {
    "application_name": "fleetgraph",
    # Compiling a plan costs more than any of these statements takes.
    "jit": "off",
    # Times in JSON are written in the session's zone.
    "timezone": "UTC",
    "statement_timeout": str(STATEMENT_SECONDS_MAX * 1000),
    # What a process holds whose machine is gone, which says no word, is free then. Without meaning on a Unix socket.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

TRANSIENT: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg raises between a server's farewell and the end of the connection
    asyncpg.PostgresConnectionError,
    asyncpg.TransactionRollbackError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ObjectNotInPrerequisiteStateError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
)
"""What says nothing of the statement but of the moment: the server restarts, is full, gave up a lock or a wait.

A loop tries again, a request fails. SQLSTATE classes 08, 40, 53, 55, 57, 25P03 and 25P04.
"""


def is_transient(error: BaseException) -> bool:
    """Say whether the same may succeed a moment later: TRANSIENT, but for a value that asyncpg cannot encode."""
    return isinstance(error, TRANSIENT) and not isinstance(error, ValueError)


class Planning(StrEnum):
    """How PostgreSQL plans a prepared statement: its `plan_cache_mode`."""

    FREE = "auto"
    """As it sees fit: after five times it may settle for one plan for all values."""
    ONCE = "force_generic_plan"
    """Once: the values make no difference to a good plan.

    By itself PostgreSQL would plan a page each time, because it knows of no limit that is a parameter how small it is.
    """
    EACH = "force_custom_plan"
    """Each time: one plan for all values would read a fleet to find a rare label."""


class Row(asyncpg.Record):
    """A result row whose columns are attributes, so that a GraphQL type reads it by its field names."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the column's type
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


Lent: TypeAlias = "PoolConnectionProxy[Row]"
"""A connection that was taken."""


if TYPE_CHECKING:

    class _Connection(asyncpg.Connection[Row]): ...

else:
    _Connection = asyncpg.Connection  # where it runs it has no type parameter


class Connection(_Connection):
    """A connection that knows how its prepared statements are planned."""

    _planning = Planning.FREE

    async def plan(self, planning: Planning) -> None:
        """Have the statements that follow planned that way."""
        if self._planning is not planning:
            await self.execute(f"set plan_cache_mode to {planning}")
            self._planning = planning


async def open_pool(dsn: str, *, size_max: int, size_min: int, role: str | None) -> "asyncpg.Pool[Row]":
    """Open a pool whose connections take `role`; raises what asyncpg raises when the server cannot be reached."""
    return await asyncpg.create_pool(
        dsn,
        min_size=size_min,
        max_size=size_max,
        record_class=Row,
        connection_class=Connection,
        init=prepare_connection,
        reset=leave_clean,
        server_settings=_SERVER_SETTINGS
        # What a process holds that is stopped in a transaction, locks of singletons included, is free then.
        | {"idle_in_transaction_session_timeout": str(int(IDLE_SECONDS_MAX * 1000))}
        | ({} if role is None else {"role": role}),
        # Plans are long statements; the number of statements that a connection keeps prepared is the bound.
        max_cacheable_statement_size=0,
        statement_cache_size=PREPARED_MAX,
        command_timeout=STATEMENT_SECONDS_MAX + 5,
    )


async def prepare_connection(connection: "asyncpg.Connection[Row]") -> None:
    """Decode jsonb with orjson, and bound how long transactions take."""
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(memoryview(data)[1:]),
    )
    if is_timed(connection):
        await connection.execute(f"set transaction_timeout to {int(TRANSACTION_SECONDS_MAX * 1000)}")


def is_timed(connection: "asyncpg.Connection[Row] | Lent") -> bool:
    """Say whether this PostgreSQL bounds how long transactions take."""
    return connection.get_server_version() >= _TIMED_FROM


async def leave_clean(connection: "asyncpg.Connection[Row]") -> None:
    """End what a cancelled operation left open; nothing else of a session stays changed that must not."""
    if connection.is_in_transaction():
        await connection.execute("rollback")


class Connections:
    """Lends connections of a pool."""

    wait_seconds_max: float = STATEMENT_SECONDS_MAX
    """How long to wait for a connection."""

    def __init__(self, pool: "asyncpg.Pool[Row]") -> None:
        self._pool = pool
        # Held between single statements, by how they are planned: the pool's own way back makes a task, which costs
        # a small request a tenth of its time.
        self._held: dict[Planning, list[Lent]] = {planning: [] for planning in Planning}
        self._waiting: dict[object, float] = {}

    def waited_seconds(self, now: float) -> float:
        """Return for how long the first of those who wait for a connection has waited, by the event loop's clock."""
        return now - next(iter(self._waiting.values())) if self._waiting else 0.0

    async def close(self) -> None:
        """Close every connection, waiting a little for those in use."""
        for planning in Planning:
            while (held := self._take_held(planning)) is not None:
                await self.give_back(held)
        try:
            await asyncio.wait_for(self._pool.close(), timeout=5)
        except TimeoutError:
            self._pool.terminate()

    async def lend(self, planning: Planning = Planning.FREE) -> Lent:
        """Take a connection; pair with `give_back`."""
        connection = await self._taken(planning)
        try:
            await connection.plan(planning)  # type: ignore[attr-defined]  # the pool's proxy is_transient it on
        except BaseException:
            await self.give_back(connection)
            raise
        return connection

    async def give_back(self, connection: Lent) -> None:
        """Return a connection, ending the snapshot it may hold; one that is gone has none, and the pool knows."""
        try:
            with suppress(*TRANSIENT):
                if connection.is_in_transaction():
                    await connection.execute("rollback")
        finally:
            await self._pool.release(connection)

    async def fetch_alone(self, text: str, arguments: Sequence[Any], planning: Planning) -> list[Row]:
        """Run one statement on any connection."""
        connection = await self.lend(planning)
        try:
            rows = await connection.fetch(text, *arguments)
        except BaseException:
            await self.give_back(connection)
            raise
        if self._waiting:
            await self.give_back(connection)
        else:
            self._held[planning].append(connection)
        return rows

    async def _taken(self, planning: Planning) -> Lent:
        if (held := self._take_held(planning)) is not None:
            return held
        if self._pool.get_idle_size():
            return await self._pool.acquire()  # there is nothing to wait for, and a deadline costs a timer
        for other in Planning:
            if (held := self._take_held(other)) is not None:
                return held
        waiter = object()
        self._waiting[waiter] = asyncio.get_running_loop().time()
        try:
            return await self._pool.acquire(timeout=self.wait_seconds_max)
        finally:
            del self._waiting[waiter]

    def _take_held(self, planning: Planning) -> "Lent | None":
        """Return a connection that is held; one that ended meanwhile has left the pool by itself."""
        held = self._held[planning]
        while held:
            connection = held.pop()
            with suppress(asyncpg.InterfaceError):
                if not connection.is_closed():
                    return connection
        return None
