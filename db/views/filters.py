"""Conditions that many views take."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.types import TypeEngine

from db.views.view import Expression, Filter

TEXTS = sa.ARRAY(sa.Text)


def one_of(column: Expression) -> Filter:
    """Return the condition that a text is one of several: one parameter, so that their number changes nothing."""

    def clause(values: Expression) -> ColumnElement[bool]:
        return column == sa.func.any(values)

    return Filter(clause, (TEXTS,), lambda values: (tuple(values),))


def equal(column: Expression, type_: TypeEngine[Any] | None = None) -> Filter:
    """Return the condition that a column has a value."""

    def clause(value: Expression) -> ColumnElement[bool]:
        return column == value

    return Filter(clause, (type_ or column.type,))
