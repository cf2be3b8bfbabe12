"""A statement in the making: its names, its parameters, and the rows that its FROM clauses open.

Expressions are built over the tables' own columns, innermost first; the select that encloses them then puts its
aliases in their place, wherever they stand inside (`Opened.put`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, FromClause, Select
from sqlalchemy.sql import visitors
from sqlalchemy.types import TypeEngine

from db.paging import Order
from db.views.selection import Asked
from db.views.view import Expression, Relation, View

Labelled = Sequence[tuple[str, Expression]]
_NUMBER: Final = sa.BigInteger()
_TEXT: Final = sa.Text()
_NOTHING: Final = sa.null()


@dataclass(frozen=True, slots=True)
class Opened:
    """Rows of a view in a FROM clause: what stands for the tables' own columns, and which rows are meant."""

    source: FromClause
    own: tuple[FromClause, ...]
    columns: Mapping[int, Expression]
    where: tuple[ColumnElement[bool], ...] = ()
    order: Order | None = None

    def put(self, expression: Any) -> Any:  # noqa: ANN401 - whatever is given, of the same kind
        """Return an expression over this source."""
        return visitors.replacement_traverse(expression, {}, lambda element, **_: self.columns.get(id(element)))

    def select(self, columns: Labelled) -> Select[Any]:
        """Return the select of these columns; what is not its own belongs to the row that encloses it."""
        shown = [self.put(column).label(key) for key, column in columns]
        return sa.select(*shown).select_from(self.source).where(*self.where).correlate_except(*self.own)

    def sorted(self, columns: Labelled) -> Select[Any]:
        """Return the same in the rows' order."""
        return self.select(columns).order_by(*self.clauses())

    def clauses(self) -> list[Expression]:
        """Return the ORDER BY clauses over this source."""
        return [self.put(clause) for clause in self.order.clauses()] if self.order else []


@dataclass(frozen=True, slots=True)
class Bound:
    """The parameters of one read's arguments."""

    where: tuple[ColumnElement[bool], ...] = ()
    after: ColumnElement[bool] | None = None
    before_key: Expression = _NOTHING
    behind_key: Expression = _NOTHING
    first: Expression = _NOTHING


class Draft:
    """Names and parameters of one statement; the tenant is the first value, then come the reads' arguments."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = asked
        self._names = 0
        self._places: list[int] = []
        place = 1
        for each in asked:
            self._places.append(place)
            place += each.width
        self.end = place
        self.tenant = self.bind(0, _TEXT)

    def name(self, letter: str) -> str:
        """Return a name that the statement does not have yet, and that no field of GraphQL can have."""
        self._names += 1
        return f"{letter}${self._names}"

    def bind(self, place: int, type_: TypeEngine[Any]) -> Expression:
        """Return the parameter of a value by its place among all values."""
        return sa.bindparam(f"v{place}", type_=type_)

    def bound(self, index: int | None) -> Bound:
        """Return the parameters of a read's arguments."""
        if index is None:
            return Bound()
        asked, place = self.asked[index], self._places[index]
        where: list[ColumnElement[bool]] = []
        for each in asked.where:
            where.append(each.clause(*self._binds(place, each.types)))
            place += len(each.types)
        after = None
        if asked.after is not None and asked.order is not None:
            after = asked.order.after(self._binds(place, asked.order.types))
            place += len(asked.order.types)
        return Bound(
            tuple(where),
            after,
            self.bind(place, _TEXT),
            self.bind(place + 1, _TEXT),
            self.bind(place + 2, _NUMBER),
        )

    def _binds(self, place: int, types: Sequence[TypeEngine[Any]]) -> list[Expression]:
        return [self.bind(place + number, type_) for number, type_ in enumerate(types)]

    def open(
        self,
        view: View,
        index: int | None,
        used: Iterable[Expression],
        *,
        relation: Relation | None = None,
        paged: bool = False,
    ) -> Opened:
        """Open a view's rows: the tenant's, by the relation's keys, by the read's arguments and behind its cursor.

        `used` are the expressions that will be read from them: joined tables that nobody reads are left out.
        """
        bound = self.bound(index)
        conditions = [] if view.summary else list(bound.where)
        if view.tenant is not None:
            conditions.insert(0, view.tenant == self.tenant)
        if paged and bound.after is not None:
            conditions.append(bound.after)
        order = (self.asked[index].order if index is not None else None) or (relation.order if relation else None)
        keys = relation.keys if relation else ()
        read = columns_in([*used, *conditions, *(order.columns if order else ()), *(target for target, _ in keys)])
        opened = self._rows(view, relation, read)
        where = [opened.put(condition) for condition in conditions]
        where += [opened.put(target) == of_row for target, of_row in keys]
        return Opened(opened.source, opened.own, opened.columns, tuple(where), order)

    def _rows(self, view: View, relation: Relation | None, read: frozenset[int]) -> Opened:
        if relation is not None and relation.source is not None:
            rows = relation.source(self, self.name("f"))
            return Opened(rows, (rows,), {id(column): rows.c[column.name] for column in view.table.c})
        alias = view.table.alias(self.name("t"))
        columns: dict[int, Expression] = {id(column): alias.c[column.name] for column in view.table.c}
        opened = Opened(alias, (alias,), columns)
        for joined in view.joins:
            if any(id(column) in read for column in joined.table.c):
                other = joined.table.alias(self.name("t"))
                columns = {**opened.columns, **{id(column): other.c[column.name] for column in joined.table.c}}
                on = Opened(other, (), columns).put(joined.on)
                opened = Opened(opened.source.outerjoin(other, on), (*opened.own, other), columns)
        return opened


def columns_in(expressions: Iterable[Expression]) -> frozenset[int]:
    """Return the identities of the columns that stand in the expressions, at any depth.

    Many ways lead to what is nested, and SQLAlchemy's own walk takes all of them: here each element is seen once.
    """
    seen: dict[int, Any] = {}  # holds what it has seen: a new object must not get the identity of one that is gone
    waiting: list[Any] = list(expressions)
    while waiting:
        element = waiting.pop()
        if id(element) not in seen:
            seen[id(element)] = element
            waiting += element.get_children()
    return frozenset(seen)
