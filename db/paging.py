"""Keyset pages: a page costs the same wherever it lies, and one statement serves the same page of many parents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select

PAGE_MAX: Final = 1000

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """A list's sort: columns that together are unique, each with the direction; the first decides most."""

    name: str
    columns: tuple[ColumnElement[Any], ...]
    names: tuple[str, ...]
    descending: bool = False

    def after(self, key: Key) -> ColumnElement[bool]:
        """Return the condition that a row lies behind the key."""
        here = sa.tuple_(*self.columns)
        there = sa.tuple_(*(sa.literal(value, column.type) for value, column in zip(key, self.columns, strict=True)))
        return here < there if self.descending else here > there

    def clauses(self) -> tuple[ColumnElement[Any], ...]:
        """Return the ORDER BY clauses."""
        return tuple(column.desc() if self.descending else column.asc() for column in self.columns)


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows of an ordered list: the `first` ones behind the key `after`."""

    order: Order
    first: int
    after: Key | None = None


def one_page(select: Select[Any], page: Page) -> Select[Any]:
    """Return the statement of a page, with one row more than asked when there is a next page."""
    if page.after is not None:
        select = select.where(page.order.after(page.after))
    return select.order_by(*page.order.clauses()).limit(page.first + 1)


def pages_of(select: Select[Any], parent: ColumnElement[str], parents: Sequence[str], page: Page) -> Select[Any]:
    """Return the statement of the same page of many parents; its column `of_parent` says whose a row is."""
    asked = sa.func.unnest(_texts(parents)).table_valued(sa.column("parent", sa.Text)).render_derived(name="asked")
    inner = one_page(select.where(parent == asked.c.parent), page).lateral("inner")
    sort = (inner.c[name].desc() if page.order.descending else inner.c[name].asc() for name in page.order.names)
    return (
        sa.select(asked.c.parent.label("of_parent"), inner)
        .select_from(asked.join(inner, sa.true()))
        .order_by(asked.c.parent, *sort)
    )


def counts_of(select: Select[Any], parent: ColumnElement[str], parents: Sequence[str]) -> Select[Any]:
    """Return the statement that counts many parents' rows."""
    counted = select.where(parent == sa.func.any(_texts(parents))).group_by(parent)
    columns: tuple[ColumnElement[Any], ...] = (parent.label("of_parent"), sa.func.count().label("count"))
    return counted.with_only_columns(*columns)


def count(select: Select[Any]) -> Select[Any]:
    """Return the statement that counts all rows."""
    return select.with_only_columns(sa.func.count(), maintain_column_froms=True)


def _texts(values: Sequence[str]) -> ColumnElement[Any]:
    return sa.bindparam("parents", list(values), type_=sa.ARRAY(sa.Text))
