"""Reads that are described and not yet made: what a resolver returns, once it has authorized.

Who executes the operation compiles such a read together with all that is selected of it, or loads its rows for the
executor to visit. Both follow the declarations of `db.declared`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from db.connections import Row
from db.views import loading
from db.views.selection import Asked
from db.views.view import View
from domain.access import Permission
from domain.errors import NotFound
from resolvers.connections import Connection
from resolvers.context import Context

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class One:
    """One row or none; `missing` says what a client that asked for it by name is told."""

    view: View
    asked: Asked
    id: str | None = None
    missing: str | None = None

    async def load(self, context: Context) -> Row | None:
        """Return the row: together with its siblings' when it is asked for by id."""
        if self.id is None:
            rows = await loading.load_rows(context.reader, context.require(Permission.READ), self.view, self.asked)
            return self.found(rows[0] if rows else None)
        row: Row | None = await context.load(("one", self.view.name), self._load_many(context), self.id)
        return self.found(row)

    def found(self, row: Found | None) -> Found | None:
        """Return what was found; raises NotFound when there is none and somebody is to be told."""
        if row is None and self.missing is not None:
            raise NotFound(self.missing)
        return row

    def _load_many(self, context: Context) -> Any:  # noqa: ANN401 - a loader's function
        tenant_id = context.require(Permission.READ)

        async def load(ids: list[str]) -> list[Row | None]:
            asked = Asked((self.view.where("id", ids),))
            rows = {row.id: row for row in await loading.load_rows(context.reader, tenant_id, self.view, asked)}
            return [rows.get(each) for each in ids]

        return load


@dataclass(frozen=True, slots=True)
class Summary(One):
    """The sum of what a read's conditions leave; each of its parts is read by itself when fields are visited."""

    async def load(self, context: Context) -> Any:  # noqa: ANN401 - what `part` is asked of
        """Return itself: there is no row to load."""
        context.require(Permission.READ)
        return self

    def part(self, name: str) -> "SummaryPart":
        """Ask for a part."""
        return SummaryPart(self.view, name, self.asked)


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """One part of a summary."""

    view: View
    name: str
    asked: Asked

    async def load(self, context: Context) -> list[Row]:
        """Return the part's rows."""
        what = loading.Belonging(self.view, self.name, self.asked)
        return await loading.load_summary(context.reader, context.require(Permission.READ), what)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a whole list."""

    view: View
    asked: Asked

    async def load(self, context: Context) -> Connection:
        """Return the page's rows."""
        tenant_id = context.require(Permission.READ)
        rows = await loading.load_rows(context.reader, tenant_id, self.view, self.asked)

        async def count() -> int:
            return await loading.count_rows(context.reader, tenant_id, self.view, self.asked)

        return Connection.of(rows, self.asked, count)


@dataclass(frozen=True, slots=True)
class Related:
    """What belongs to a row by a relation of its view; the row is None while a selection is compiled."""

    view: View
    name: str
    asked: Asked
    row: Row | None = field(default=None, compare=False)

    async def load(self, context: Context) -> Any:  # noqa: ANN401 - a row, rows, or a page of them
        """Return what belongs to this row; siblings' is loaded with it."""
        relation = self.view.relations[self.name]
        tenant_id = context.require(Permission.READ)
        key = self._key()
        what = loading.Belonging(self.view, self.name, self.asked)

        async def load(keys: list[Any]) -> list[list[Row]]:
            found: dict[Any, list[Row]] = {each: [] for each in keys}
            for row in await loading.load_related(context.reader, tenant_id, what, keys):
                found[row.of_parent].append(row)
            return [found[each] for each in keys]

        async def load_counts(keys: list[Any]) -> list[int]:
            counts = await loading.count_related(context.reader, tenant_id, what, keys)
            return [counts.get(each, 0) for each in keys]

        named = (self.view.name, self.name, self.asked.identity)
        rows: list[Row] = await context.load(("related", *named), load, key)
        if relation.paged:

            async def count() -> int:
                return int(await context.load(("count", *named), load_counts, key))

            return Connection.of(rows, self.asked, count)
        return rows if relation.many else (rows[0] if rows else None)

    def _key(self) -> Any:  # noqa: ANN401 - the key's type
        if self.row is None:
            raise RuntimeError(f"{self.name} of no row cannot be loaded")
        return self.row[loading.key_name(self.view)]


@dataclass(frozen=True, slots=True)
class Single:
    """One value of the operation's snapshot, which is no row."""

    read: Callable[[Context], Awaitable[Any]]

    async def load(self, context: Context) -> Any:  # noqa: ANN401 - the value
        """Return the value."""
        return await self.read(context)
