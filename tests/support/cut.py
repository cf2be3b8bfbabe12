"""Connections that are lost at a chosen statement of a transaction, or at its commit, before it or after.

What is lost before the commit leaves nothing; after it, only the answer is lost.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from db.database import Database, Transaction
from tests.support.rows import written_rows

_STATEMENTS: Final = ("fetch", "first", "value", "execute")
UNHARMED: Final = 2**31


class Cuts:
    """Loses the connection once so many statements have run; then it is whole again."""

    def __init__(self) -> None:
        self.left = UNHARMED
        self.count = 0

    def pass_one(self) -> None:
        """Let a statement run, or lose the connection."""
        if self.left == 0:
            self.left = UNHARMED
            self.count += 1
            raise ConnectionResetError("lost")
        self.left -= 1


def cut_connections(monkeypatch: pytest.MonkeyPatch) -> Cuts:
    """Let connections be lost as the result says."""
    cuts = Cuts()
    for name in _STATEMENTS:
        monkeypatch.setattr(Transaction, name, _counted(getattr(Transaction, name), cuts))
    whole = Database.transaction

    @asynccontextmanager
    async def transaction(database: Database) -> AsyncIterator[Transaction]:
        async with whole(database) as tx:
            yield tx
            cuts.pass_one()
        cuts.pass_one()

    monkeypatch.setattr(Database, "transaction", transaction)
    return cuts


def _counted(statement: Callable[..., Awaitable[Any]], cuts: Cuts) -> Callable[..., Awaitable[Any]]:
    async def counted(self: Transaction, *args: Any) -> Any:  # noqa: ANN401 - whatever it returns
        cuts.pass_one()
        return await statement(self, *args)

    return counted


async def cut_everywhere(database: Database, cuts: Cuts, attempt: Callable[[], Awaitable[None]]) -> None:
    """Attempt something until nothing is cut off in it: each time one statement later, anew once it got further."""
    after = 0
    while True:
        before, known = await _rows(database), cuts.count
        cuts.left = after
        await attempt()
        cuts.left = UNHARMED
        if cuts.count == known:
            return
        after = after + 1 if await _rows(database) == before else 0


async def _rows(database: Database) -> Mapping[str, list[str]]:
    """Return what is written, whoever wrote it; that a node was heard of again is no step further."""
    async with database.session() as session:
        found = await written_rows(session)
    return {table: [row.split(" ", 1)[1] for row in rows] for table, rows in found.items() if table != "node_liveness"}
