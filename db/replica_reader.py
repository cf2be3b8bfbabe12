"""The reads of a query that may go to a replica."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from db.connections import TRANSIENT, Row
from db.database import Database, Reader, Statement
from db.events import has_seen_all
from db.replica import OWN, Replica, Source
from db.views.plan import Compiled
from domain.cursor import FeedCursor
from domain.freshness import Consistency, Freshness

Found = TypeVar("Found")


class ReplicaReader(Reader):
    """Reads from the replica if what it shows is fresh enough, else from the primary; the first statement decides.

    A replica that fails at this statement costs its repetition on the primary. One that fails later fails what is
    being read, with what is TRANSIENT: the state that was read before is nowhere else.
    """

    def __init__(
        self, primary: Database, replica: Replica, freshness: Freshness, count: Callable[[Source], None]
    ) -> None:
        super().__init__(primary, snapshot=True)
        self._primary = primary
        self._replica = replica
        self._wants_primary = freshness.consistency is Consistency.STRONG
        self._needed = [] if freshness.after is None else [freshness.after]
        self._count = count
        self._turn = asyncio.Lock()
        self._source: Reader | None = None
        self._from = Source.PRIMARY

    def need(self, cursor: FeedCursor) -> None:
        """Read only what has seen everything up to the cursor; say it before the first statement."""
        if self._source is not None:
            raise RuntimeError("what is read from was chosen already")
        self._needed.append(cursor)

    async def fetch(self, statement: Statement, *args: Any) -> list[Row]:  # noqa: ANN401
        """Run a statement and return its rows."""
        return await self._read(lambda source: source.fetch(statement, *args))

    async def texts(self, compiled: Compiled, values: Sequence[Any], *, alone: bool = False) -> list[Row]:
        """Run a plan's statement and return its rows; raises AbsentValue."""
        return await self._read(lambda source: source.texts(compiled, values, alone=alone))

    async def batches(self, compiled: Compiled, values: Sequence[Any], size: int) -> AsyncGenerator[list[Row], None]:
        """Run a plan's statement and yield its rows as they come, `size` at a time; raises AbsentValue."""

        async def begin(source: Reader) -> tuple[AsyncGenerator[list[Row], None], list[Row]]:
            batches = source.batches(compiled, values, size)
            return batches, await anext(batches, [])

        batches, rows = await self._read(begin)
        async with aclosing(batches):
            while rows:
                yield rows
                rows = await self._noting(anext(batches, []))

    async def close(self) -> None:
        """Give the connection back, ending the snapshot; a statement that still runs is waited for."""
        async with self._turn:
            self._closed = True
            if self._source is not None:
                await self._leave(self._source)
                self._count(self._from)

    async def _read(self, read: Callable[[Reader], Awaitable[Found]]) -> Found:
        self.statements += 1
        async with self._turn:
            if self._closed:
                raise RuntimeError("the operation has ended")
            if self._source is None:
                return await self._read_first(read)
            source = self._source
        return await self._noting(read(source))

    async def _read_first(self, read: Callable[[Reader], Awaitable[Found]]) -> Found:
        offered = Source.PRIMARY if self._wants_primary else self._replica.offer()
        if isinstance(offered, Source):
            return await read(self._go_to_primary(offered))
        source = self._source = offered.reader(snapshot=True)
        self._from = why = Source.REPLICA
        try:
            if not self._needed or await has_seen_all(source, self._needed):
                return await read(source)
            why = Source.BEHIND
        except TRANSIENT as error:
            if isinstance(error, OWN):
                raise
            self._replica.failed(error)
            why = Source.FAILED
        await self._leave(source)
        return await read(self._go_to_primary(why))

    async def _noting(self, reading: Awaitable[Found]) -> Found:
        """Read on; a replica that is gone is not offered to others."""
        try:
            return await reading
        except TRANSIENT as error:
            if self._from is Source.REPLICA:
                self._replica.failed(error)
            raise

    async def _leave(self, source: Reader) -> None:
        # A connection that is gone cannot be given back, and need not.
        with suppress(*(TRANSIENT if self._from is Source.REPLICA else ())):
            await source.close()

    def _go_to_primary(self, why: Source) -> Reader:
        self._from = why
        self._source = self._primary.reader(snapshot=True)
        return self._source
