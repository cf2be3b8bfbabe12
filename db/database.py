"""The pool, and the two ways to use it: a transaction that writes, and a snapshot that reads."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

import asyncpg
import orjson
from asyncpg.pool import PoolConnectionProxy
from sqlalchemy.dialects.postgresql import asyncpg as dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from db.views.plan import Compiled

_DIALECT: Final = dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it without types
STATEMENT_SECONDS_MAX: Final = 30
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
    "idle_in_transaction_session_timeout": "60000",
}

_BEGIN: Final = "begin isolation level repeatable read read only"
# After five times PostgreSQL may settle for one plan for all values, which reads a fleet to find a rare label.
_SKEWED: Final = "set local plan_cache_mode to force_custom_plan"
_BEGIN_SKEWED: Final = f"{_BEGIN}; {_SKEWED}"

ABSENT_VALUE: Final = "FG001"
"""SQLSTATE of `absent_value()`."""

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
)
"""What says nothing of the statement but of the moment: the server restarts, is full, gave up a lock or a wait.

A loop tries again, a request fails. SQLSTATE classes 08, 40, 53, 55, 57 and 25P03.
"""


class AbsentValue(Exception):  # noqa: N818 - the ordinary execution tells the error
    """A compiled read met a null where the schema has none; field by field, the error gets its place."""


Statement = str | ClauseElement


class Row(asyncpg.Record):
    """A result row whose columns are attributes, so that a GraphQL type reads it by its field names."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the column's type
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def compiled(statement: Statement, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the text and its bound values: SQL text as it is, a SQLAlchemy Core statement as asyncpg takes it."""
    if isinstance(statement, str):
        return statement, args
    built = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    if not isinstance(built, SQLCompiler):
        raise TypeError(f"not a statement with values: {statement!r}")
    names = built.positiontup or ()
    return str(built), tuple(built.params[name] for name in names)


async def prepare_connection(connection: "asyncpg.Connection[Row]") -> None:
    """Decode jsonb with orjson."""
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        format="binary",
        encoder=lambda value: b"\x01" + orjson.dumps(value),
        decoder=lambda data: orjson.loads(memoryview(data)[1:]),
    )


async def leave_clean(connection: "asyncpg.Connection[Row]") -> None:
    """End what a cancelled operation left open; nothing else of a session is ever changed, so nothing is reset."""
    if connection.is_in_transaction():
        await connection.execute("rollback")


class Transaction:
    """One transaction on one connection; every statement of a decision runs in it, in plain sight."""

    def __init__(self, connection: "PoolConnectionProxy[Row]") -> None:
        self._connection = connection
        self.wrote_events = False

    async def fetch(self, statement: Statement, *args: Any) -> list[Row]:  # noqa: ANN401
        """Run a statement and return its rows."""
        text, values = compiled(statement, args)
        return await self._connection.fetch(text, *values)

    async def first(self, statement: Statement, *args: Any) -> Row | None:  # noqa: ANN401
        """Run a statement and return its first row, if any."""
        text, values = compiled(statement, args)
        return await self._connection.fetchrow(text, *values)

    async def value(self, statement: Statement, *args: Any) -> Any:  # noqa: ANN401
        """Run a statement and return the first column of its first row, or None."""
        text, values = compiled(statement, args)
        return await self._connection.fetchval(text, *values)

    async def execute(self, statement: Statement, *args: Any) -> None:  # noqa: ANN401
        """Run a statement for its effect."""
        text, values = compiled(statement, args)
        await self._connection.execute(text, *values)


class Reader:
    """The reads of one operation; with `snapshot` they all see one view of the data, on one connection.

    Sibling fields may read at the same time: the statements take turns. Without a snapshot a connection is held for
    one statement only, so that an operation that also writes never waits for a second one while it holds the first.
    """

    def __init__(self, database: "Database", *, snapshot: bool) -> None:
        self._database = database
        self._snapshot = snapshot
        self._lock = asyncio.Lock()
        self._connection: PoolConnectionProxy[Row] | None = None
        self._closed = False
        self.statements = 0

    async def fetch(self, statement: Statement, *args: Any) -> list[Row]:  # noqa: ANN401
        """Run a statement and return its rows."""
        self.statements += 1
        if not self._snapshot:
            async with self._database.session() as session:
                return await session.fetch(statement, *args)
        text, values = compiled(statement, args)
        async with self._lock:
            return await self._fetched_here(text, values)

    async def texts(self, compiled: Compiled, values: Sequence[Any], *, alone: bool = False) -> list[Row]:
        """Run a plan's statement and return its rows; raises AbsentValue.

        What is read after that sees another state: the failure ended the snapshot.

        `alone` says that the operation reads nothing else: one statement sees one state without a transaction.
        """
        arguments = compiled.arguments(values)
        try:
            if alone and self._connection is None and not compiled.skewed:
                self.statements += 1
                return await self._database.fetch_alone(compiled.text, arguments)
            if not self._snapshot:
                return await self.fetch(compiled.text, *arguments)
            self.statements += 1
            async with self._lock:
                return await self._fetched_here(compiled.text, arguments, skewed=compiled.skewed)
        except asyncpg.PostgresError as error:
            if error.sqlstate == ABSENT_VALUE:
                raise AbsentValue from error
            raise

    async def _fetched_here(self, text: str, arguments: Sequence[Any], *, skewed: bool = False) -> list[Row]:
        """Run a statement on the snapshot's connection, which a failure gives back: its transaction is at its end.

        Siblings that wait for their turn begin another one then.
        """
        connection = await self._open(skewed=skewed)
        try:
            return await connection.fetch(text, *arguments)
        except asyncpg.PostgresError:
            self._connection = None
            await self._database.give_back(connection)
            raise

    async def batches(self, compiled: Compiled, values: Sequence[Any], size: int) -> AsyncGenerator[list[Row], None]:
        """Run a plan's statement and yield its rows as they come, `size` at a time; raises AbsentValue."""
        self.statements += 1
        async with self._lock:
            connection = await self._open(skewed=compiled.skewed)
            try:
                cursor = await connection.cursor(compiled.text, *compiled.arguments(values))
                while rows := await cursor.fetch(size):
                    yield rows
            except asyncpg.PostgresError as error:
                self._connection = None
                await self._database.give_back(connection)
                if error.sqlstate == ABSENT_VALUE:
                    raise AbsentValue from error
                raise

    async def first(self, statement: Statement, *args: Any) -> Row | None:  # noqa: ANN401
        """Run a statement and return its first row, if any."""
        rows = await self.fetch(statement, *args)
        return rows[0] if rows else None

    async def value(self, statement: Statement, *args: Any) -> Any:  # noqa: ANN401
        """Run a statement and return the first column of its first row, or None."""
        row = await self.first(statement, *args)
        return row[0] if row else None

    async def close(self) -> None:
        """Give the connection back, ending the snapshot; a statement that still runs is waited for."""
        async with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            await self._database.give_back(connection)

    async def _open(self, *, skewed: bool = False) -> "PoolConnectionProxy[Row]":
        if self._closed:
            raise RuntimeError("the operation has ended")
        if self._connection is None:
            connection = await self._database.lend()
            try:
                await connection.execute(_BEGIN_SKEWED if skewed else _BEGIN)
            except BaseException:
                # Cut off in its middle, it may or may not have begun: nobody else gets this connection.
                connection.terminate()
                await self._database.give_back(connection)
                raise
            self._connection = connection
        elif skewed:
            await self._connection.execute(_SKEWED)
        return self._connection


class Database:
    """A pool of connections to one PostgreSQL."""

    def __init__(self, pool: "asyncpg.Pool[Row]", dsn: str) -> None:
        self._pool = pool
        self.dsn = dsn
        # Set after a commit that wrote events: the relay of this process need not wait for its next poll.
        self.events_committed = asyncio.Event()
        # Set after a commit that made inventory pending.
        self.inventory_pending = asyncio.Event()

    @classmethod
    async def connect(cls, dsn: str, *, size_max: int = POOL_SIZE_MAX, size_min: int = 1) -> Self:
        """Open the pool; raises what asyncpg raises when the server cannot be reached.

        Below `size_min` connections asyncpg makes new ones by itself, whether they can be had or not.
        """
        pool = await asyncpg.create_pool(
            dsn,
            min_size=size_min,
            max_size=size_max,
            record_class=Row,
            init=prepare_connection,
            reset=leave_clean,
            server_settings=_SERVER_SETTINGS,
            # Plans are long statements; the number of statements that a connection keeps prepared is the bound.
            max_cacheable_statement_size=0,
            statement_cache_size=PREPARED_MAX,
            command_timeout=STATEMENT_SECONDS_MAX + 5,
        )
        return cls(pool, dsn)

    async def close(self) -> None:
        """Close every connection, waiting a little for those in use."""
        try:
            await asyncio.wait_for(self._pool.close(), timeout=5)
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction that commits when the block ends and is undone when it raises."""
        async with self._pool.acquire(timeout=STATEMENT_SECONDS_MAX) as connection:
            async with connection.transaction():
                transaction = Transaction(connection)
                yield transaction
            if transaction.wrote_events:
                self.events_committed.set()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Transaction]:
        """Keep one connection without a transaction: for single statements, each a round trip and no more."""
        connection = await self.lend()
        try:
            yield Transaction(connection)
        finally:
            await self._pool.release(connection)

    async def fetch_alone(self, text: str, arguments: Sequence[Any]) -> list[Row]:
        """Run one statement on any connection."""
        connection = await self.lend()
        try:
            return await connection.fetch(text, *arguments)
        finally:
            await self._pool.release(connection)

    def reader(self, *, snapshot: bool) -> Reader:
        """Return a reader; close it when its operation ends."""
        return Reader(self, snapshot=snapshot)

    async def lend(self) -> "PoolConnectionProxy[Row]":
        """Take a connection; pair with `give_back`."""
        if self._pool.get_idle_size():
            return await self._pool.acquire()  # there is nothing to wait for, and a deadline costs a timer
        return await self._pool.acquire(timeout=STATEMENT_SECONDS_MAX)

    async def give_back(self, connection: "PoolConnectionProxy[Row]") -> None:
        """Return a connection, ending the snapshot it may hold; one that is gone has none, and the pool knows."""
        try:
            with suppress(*TRANSIENT):
                if connection.is_in_transaction():
                    await connection.execute("rollback")
        finally:
            await self._pool.release(connection)
