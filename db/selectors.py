"""Selectors in SQL: conditions over a jsonb object whose values are texts.

Their text depends on the operators only; every key and value is a bound parameter. A GIN index over the labels serves
`in` with either operator class. What asks for a key is served by `jsonb_ops` alone, and as `?`: `jsonb_path_ops` has
no entry for a bare key, and of `@? '$."key"'`, which both accept, both read the whole index.
"""

from decimal import Decimal
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.types import TypeEngine

from db.tables.columns import JSONB, TEXT_ARRAY
from domain.selector import COMPARISONS, NUMBER_PATTERN, Operator, Requirement

_TEXT: Final = sa.Text()
_NUMERIC: Final = sa.Numeric()
_JSONB_ARRAY: Final = sa.ARRAY(JSONB)
_NUMBER: Final = sa.literal_column(f"'^{NUMBER_PATTERN}$'", sa.Text)


def types(operator: Operator) -> tuple[TypeEngine[Any], ...]:
    """Return the types of what an operator's clause binds."""
    match operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return (_TEXT,)
        case Operator.IN:
            return (_JSONB_ARRAY,)
        case Operator.NOT_IN:
            return (_TEXT, TEXT_ARRAY)
        case _:
            return (_TEXT, _NUMERIC)


def values(requirement: Requirement) -> tuple[Any, ...]:
    """Return what the requirement's clause binds, in the order of its types."""
    match requirement.operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return (requirement.key,)
        case Operator.IN:
            return ([{requirement.key: value} for value in requirement.values],)
        case Operator.NOT_IN:
            return (requirement.key, list(requirement.values))
        case _:
            return (requirement.key, Decimal(requirement.values[0]))


def clause(labels: ColumnElement[Any], operator: Operator, *bound: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition of an operator over parameters of its `types`."""
    match operator:
        case Operator.EXISTS:
            return _has(labels, *bound)
        case Operator.DOES_NOT_EXIST:
            return sa.not_(_has(labels, *bound))
        case Operator.IN:
            return labels.op("@>", return_type=sa.Boolean())(sa.func.any(*bound))
        case Operator.NOT_IN:
            # No index finds what is absent; of the ways to look at every row this is the fastest.
            key, among = bound
            return (_value(labels, key) == sa.func.any(among)).is_not(sa.true())
        case comparing:
            key, number = bound
            value = _value(labels, key)
            compared = COMPARISONS[comparing](sa.cast(value, sa.Numeric), number)
            # The cast fails on what is no number; of all conditions only CASE is sure to be evaluated in order.
            return sa.and_(_has(labels, key), sa.case((value.op("~")(_NUMBER), compared), else_=sa.false()))


def _has(labels: ColumnElement[Any], key: ColumnElement[Any]) -> ColumnElement[bool]:
    return labels.op("?", return_type=sa.Boolean())(key)


def _value(labels: ColumnElement[Any], key: ColumnElement[Any]) -> ColumnElement[str]:
    return labels.op("->>", return_type=sa.Text())(key)
