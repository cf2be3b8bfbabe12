"""The vocabulary in which rows are declared, once, beside their table.

A GraphQL field reads the like-named column of its type's row class. What differs is declared here: an expression, a
key of a JSON document, or a relation. Expressions are written over the tables' own columns; whoever builds a
statement puts aliases in their place.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, FromClause, Table
from sqlalchemy.types import TypeEngine

from db.paging import Order

Expression = ColumnElement[Any]


@dataclass(frozen=True, slots=True)
class Joined:
    """A table that has at most one row for each row of the view's."""

    table: Table
    on: ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Key:
    """A value inside a JSON column: read by SQL and from a loaded row alike."""

    column: str
    key: str

    def read(self, row: Any) -> Any:  # noqa: ANN401 - any JSON value of any row
        """Return the value in a loaded row."""
        return row[self.column].get(self.key)


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition with a value.

    `clause` gets one bound parameter for each of `types`, with what `values` makes of the value.
    """

    clause: Callable[..., ColumnElement[bool]]
    types: tuple[TypeEngine[Any], ...] = (sa.Text(),)
    values: Callable[[Any], tuple[Any, ...]] = field(default=lambda value: (value,))
    skewed: bool = False
    """How many rows fit depends so much on the value that one plan for all values is a bad one."""


@dataclass(frozen=True, slots=True)
class Where:
    """A filter with its value. Of one `shape` are those whose SQL text is the same."""

    shape: Hashable
    clause: Callable[..., ColumnElement[bool]]
    types: tuple[TypeEngine[Any], ...]
    values: tuple[Any, ...]
    skewed: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of another kind that belong to a row.

    `keys` pairs a column of the target with an expression over the row. `order` sorts many; with `first_only` the
    first of them is the one. `source`, for rows that no table holds, makes what gives them under the given name, in the
    statement's draft (`db.views.draft.Draft`): a set-returning function over the row, or a subquery.
    """

    target: type
    keys: tuple[tuple[Expression, Expression], ...] = ()
    many: bool = False
    paged: bool = False
    order: Order | None = None
    first_only: bool = False
    filters: Mapping[str, Filter] = field(default_factory=dict)
    source: Callable[[Any, str], FromClause] | None = None
    size: int = 1
    """How many rows to reckon with where no page says it."""

    @property
    def view(self) -> "View":
        """How the target's rows are read."""
        return VIEWS[self.target]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How the rows of a kind are read.

    `name` is their GraphQL type; where a `variant` expression tells the type row by row, the name of what they have
    in common. `key` tells a row from all others, `tenant` says whose it is: rows of others are not there.
    """

    name: str
    table: FromClause
    key: Expression | None = None
    tenant: Expression | None = None
    joins: tuple[Joined, ...] = ()
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    keys: Mapping[str, Key] = field(default_factory=dict)
    documents: Mapping[str, Expression] = field(default_factory=dict)
    """JSON documents, or lists of them, whose parts are read by their keys."""
    relations: Mapping[str, Relation] = field(default_factory=dict)
    filters: Mapping[str, Filter] = field(default_factory=dict)
    orders: Mapping[str, Order] = field(default_factory=dict)
    same: frozenset[str] = frozenset()
    """Fields that are the row itself, read as another type."""
    summary: bool = False
    """The one row sums others up: a read's conditions are those others', and its relations heed them."""
    variant: Expression | None = None
    feed: Order | None = None
    """The rows are a feed: each has a `cursor`, its place in this order, wherever it is shown."""

    @property
    def identity(self) -> Expression:
        """The key; a view whose rows own nothing need not have one."""
        if self.key is None:
            raise TypeError(f"the rows of {self.name} have no key")
        return self.key

    def column(self, name: str) -> Expression | None:
        """Return the expression of that name: a declared one, or the table's column."""
        found = self.expressions.get(name)
        if found is not None:
            return found
        return self.table.c.get(name)

    def columns(self) -> dict[str, Expression]:
        """Return everything that a loaded row carries."""
        return {**{column.name: column for column in self.table.c}, **self.expressions}

    def where(self, name: str, value: Any) -> Where:  # noqa: ANN401 - whatever the filter takes
        """Return a declared filter with its value."""
        found = self.filters[name]
        return Where(name, found.clause, found.types, found.values(value), found.skewed)


VIEWS: Final[dict[type, View]] = {}
_BY_NAME: Final[dict[str, View]] = {}


def declare(row: type, view: View, variants: Iterable[str] = ()) -> View:
    """Register how the rows of a row class are read, under the names that they say in their column `typename`."""
    VIEWS[row] = view
    _BY_NAME.update(dict.fromkeys((view.name, *variants), view))
    return view


def view_named(name: str) -> View:
    """Return the view whose rows say that name in their column `typename`."""
    return _BY_NAME[name]
