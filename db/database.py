"""The pool, and the two ways to use it: a transaction that writes, and a snapshot that reads."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Self

import asyncpg
from sqlalchemy.dialects.postgresql import asyncpg as dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.compiler import SQLCompiler

from db.connections import (
    POOL_SIZE_MAX,
    SNAPSHOT_SECONDS_MAX,
    Connections,
    Lent,
    Planning,
    Row,
    is_timed,
    open_pool,
)
from db.views.plan import Compiled
from domain.cursor import FeedCursor
from domain.feed import refuse_unreachable

_DIALECT: Final = dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it without types
# A snapshot locks no rows, and a client that reads its answer slowly is no fault.
_BEGIN: Final = """
begin isolation level repeatable read read only;
set local idle_in_transaction_session_timeout to 60000
"""
# A clock that runs is not set anew, only stopped or started.
_BEGIN_TIMED: Final = f"""{_BEGIN};
set local transaction_timeout to 0;
set local transaction_timeout to '{SNAPSHOT_SECONDS_MAX}s'
"""
_EACH: Final = f"set local plan_cache_mode to {Planning.EACH}"

ABSENT_VALUE: Final = "FG001"
"""SQLSTATE of `absent_value()`."""
_NOT_HELD: Final = "FG002"
"""SQLSTATE of `log_follows()`, whose detail says the cursor's position, the log's floor and its head."""


class AbsentValue(Exception):  # noqa: N818 - the ordinary execution tells the error
    """A compiled read met a null where the schema has none; field by field, the error gets its place."""


Statement = str | ClauseElement


def compiled(statement: Statement, args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the text and its bound values: SQL text as it is, a SQLAlchemy Core statement as asyncpg takes it."""
    if isinstance(statement, str):
        return statement, args
    built = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    if not isinstance(built, SQLCompiler):
        raise TypeError(f"not a statement with values: {statement!r}")
    names = built.positiontup or ()
    return str(built), tuple(built.params[name] for name in names)


class Transaction:
    """One transaction on one connection; every statement of a decision runs in it, in plain sight."""

    def __init__(self, connection: Lent) -> None:
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
        self._connection: Lent | None = None
        self._closed = False
        self.statements = 0

    async def fetch(self, statement: Statement, *args: Any) -> list[Row]:  # noqa: ANN401
        """Run a statement and return its rows; raises CursorExpired."""
        self.statements += 1
        text, values = compiled(statement, args)
        with _told():
            if not self._snapshot:
                async with self._database.session() as session:
                    return await session.fetch(text, *values)
            async with self._lock:
                return await self._fetched_here(text, values)

    async def texts(self, compiled: Compiled, values: Sequence[Any], *, alone: bool = False) -> list[Row]:
        """Run a plan's statement and return its rows; raises AbsentValue and CursorExpired.

        What is read after that sees another state: the failure ended the snapshot.

        `alone` says that the operation reads nothing else: one statement sees one state without a transaction.
        """
        arguments = compiled.arguments(values)
        with _told():
            if alone and self._connection is None:
                self.statements += 1
                return await self._database.fetch_alone(compiled.text, arguments, compiled.planning)
            if not self._snapshot:
                return await self.fetch(compiled.text, *arguments)
            self.statements += 1
            async with self._lock:
                return await self._fetched_here(compiled.text, arguments, compiled.planning)

    async def _fetched_here(self, text: str, arguments: Sequence[Any], planning: Planning = Planning.FREE) -> list[Row]:
        """Run a statement on the snapshot's connection, which a failure gives back: its transaction is at its end.

        Siblings that wait for their turn begin another one then.
        """
        connection = await self._open(planning)
        try:
            return await connection.fetch(text, *arguments)
        except asyncpg.PostgresError:
            self._connection = None
            await self._database.give_back(connection)
            raise

    async def batches(self, compiled: Compiled, values: Sequence[Any], size: int) -> AsyncGenerator[list[Row], None]:
        """Run a plan's statement and yield its rows as they come, `size` at a time; raises as `texts` does."""
        self.statements += 1
        with _told():
            async with self._lock:
                connection = await self._open(compiled.planning)
                try:
                    cursor = await connection.cursor(compiled.text, *compiled.arguments(values))
                    while rows := await cursor.fetch(size):
                        yield rows
                except asyncpg.PostgresError:
                    self._connection = None
                    await self._database.give_back(connection)
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

    async def _open(self, planning: Planning) -> Lent:
        if self._closed:
            raise RuntimeError("the operation has ended")
        if self._connection is None:
            connection = await self._database.lend(Planning.EACH if planning is Planning.EACH else Planning.FREE)
            try:
                await connection.execute(_BEGIN_TIMED if is_timed(connection) else _BEGIN)
            except BaseException:
                # Cut off in its middle, it may or may not have begun: nobody else gets this connection.
                with suppress(asyncpg.InterfaceError):  # asyncpg has taken it back, as it was lost
                    connection.terminate()
                await self._database.give_back(connection)
                raise
            self._connection = connection
        elif planning is Planning.EACH:
            await self._connection.execute(_EACH)
        return self._connection


@contextmanager
def _told() -> Iterator[None]:
    """Raise what a statement refuses as what it means."""
    try:
        yield
    except asyncpg.PostgresError as error:
        if error.sqlstate == ABSENT_VALUE:
            raise AbsentValue from error
        if error.sqlstate == _NOT_HELD:
            position, floor, head = (int(part) for part in (error.detail or "").split())
            refuse_unreachable(FeedCursor(position), floor=floor, head=head)
        raise


class Database(Connections):
    """The ways to use the connections to one PostgreSQL."""

    def __init__(self, pool: "asyncpg.Pool[Row]", dsn: str) -> None:
        super().__init__(pool)
        self.dsn = dsn
        # Set after a commit that wrote events: the relay of this process need not wait for its next poll.
        self.events_committed = asyncio.Event()
        # Set after a commit that made inventory pending.
        self.inventory_pending = asyncio.Event()
        # Set after a commit by which a node that was unreachable or lost is heard of again.
        self.heard_again = asyncio.Event()
        # Set after a commit by which a node may come further in acceptance.
        self.acceptance_due = asyncio.Event()

    @property
    def wakes(self) -> Mapping[str, asyncio.Event]:
        """What wakes reconcilers, by the names that processes call it by among each other."""
        return {
            "inventory": self.inventory_pending,
            "liveness": self.heard_again,
            "acceptance": self.acceptance_due,
        }

    @classmethod
    async def connect(
        cls, dsn: str, *, size_max: int = POOL_SIZE_MAX, size_min: int = 1, role: str | None = None
    ) -> Self:
        """Open the pool, whose connections take `role` where one is given.

        Raises what asyncpg raises when the server cannot be reached.

        Below `size_min` connections asyncpg makes new ones by itself, whether they can be had or not.
        """
        return cls(await open_pool(dsn, size_max=size_max, size_min=size_min, role=role), dsn)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open a transaction that commits when the block ends and is undone when it raises."""
        connection = await self.lend()
        try:
            async with connection.transaction():
                transaction = Transaction(connection)
                yield transaction
        finally:
            await self.give_back(connection)
        if transaction.wrote_events:
            self.events_committed.set()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Transaction]:
        """Keep one connection without a transaction: for single statements, each a round trip and no more."""
        connection = await self.lend()
        try:
            yield Transaction(connection)
        finally:
            await self.give_back(connection)

    def reader(self, *, snapshot: bool) -> Reader:
        """Return a reader; close it when its operation ends."""
        return Reader(self, snapshot=snapshot)
