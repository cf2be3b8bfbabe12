"""Relay connections over keyset pages."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select

from db import paging
from db.database import Row
from db.paging import PAGE_MAX, Order, Page
from domain import cursor
from domain.errors import InvalidInput
from resolvers.context import Context

_FIRST_MIN: Final = 0
PAGE_DEFAULT: Final = 50


@dataclass(frozen=True, slots=True)
class Connection:
    """One page of a list, with the count of the whole for who asks."""

    rows: Sequence[Row]
    page: Page
    scope: str
    has_next: bool
    count: Callable[[], Awaitable[int]]

    def cursor(self, row: Row) -> str:
        """Return the cursor of a row of this page."""
        return cursor.encode_page(self.scope, tuple(row[name] for name in self.page.order.names))


def scope_of(name: str, order: Order) -> str:
    """Return what a cursor of this list and order is marked with."""
    return f"{name}:{order.name}"


def asked_page(name: str, order: Order, first: int | None, after: str | None) -> Page:
    """Read `first` and `after`; raises InvalidInput naming the argument."""
    asked = page_size(first)
    key = None if after is None else cursor.decode_page(after, scope_of(name, order), len(order.names))
    return Page(order, asked, key)


def page_size(first: int | None) -> int:
    """Return how many rows are asked for; raises InvalidInput beyond the bounds."""
    asked = PAGE_DEFAULT if first is None else first
    if not _FIRST_MIN <= asked <= PAGE_MAX:
        raise InvalidInput(f"first: {first}; from {_FIRST_MIN} to {PAGE_MAX} rows may be asked for")
    return asked


async def connection(context: Context, name: str, select: Select[Any], page: Page) -> Connection:
    """Read one page of a whole list."""
    rows = await context.reader.fetch(paging.one_page(select, page))

    async def count() -> int:
        return int(await context.reader.value(paging.count(select)))

    return _connection(name, rows, page, count)


@dataclass(frozen=True, slots=True)
class Children:
    """A list that every parent of a kind has: its rows, the column that says whose they are, and what was asked."""

    name: str
    select: Select[Any]
    parent: ColumnElement[str]
    asked: Hashable = None


async def child_connection(context: Context, children: Children, parent_id: str, page: Page) -> Connection:
    """Read the same page of every sibling's list in one statement, and return this parent's."""

    async def load(parent_ids: list[str]) -> list[Sequence[Row]]:
        rows: dict[str, list[Row]] = {parent_id: [] for parent_id in parent_ids}
        statement = paging.pages_of(children.select, children.parent, parent_ids, page)
        for row in await context.reader.fetch(statement):
            rows[row.of_parent].append(row)
        return [rows[parent_id] for parent_id in parent_ids]

    async def load_counts(parent_ids: list[str]) -> list[int]:
        rows = await context.reader.fetch(paging.counts_of(children.select, children.parent, parent_ids))
        counts = {row.of_parent: row["count"] for row in rows}
        return [counts.get(parent_id, 0) for parent_id in parent_ids]

    async def count() -> int:
        return int(await context.load((children.name, "count", children.asked), load_counts, parent_id))

    key = (children.name, children.asked, page.order.name, page.first, page.after)
    return _connection(children.name, await context.load(key, load, parent_id), page, count)


def _connection(name: str, rows: Sequence[Row], page: Page, count: Callable[[], Awaitable[int]]) -> Connection:
    return Connection(rows[: page.first], page, scope_of(name, page.order), len(rows) > page.first, count)
