"""Selectors in SQL: conditions over a jsonb object whose values are texts.

Their text depends on the operators only; every key and value is a bound parameter. A GIN index over the labels serves
`in` with either operator class. What asks for a key is served by `jsonb_ops` alone, and as `?`: `jsonb_path_ops` has
no entry for a bare key, and of `@? '$."key"'`, which both accept, both read the whole index.
"""

from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import BindParameter, ColumnElement

from db.tables.columns import JSONB, TEXT_ARRAY
from domain.selector import COMPARISONS, NUMBER_PATTERN, Operator, Requirement

_JSONB_ARRAY: Final = sa.ARRAY(JSONB)
_NUMBER: Final = sa.literal_column(f"'^{NUMBER_PATTERN}$'", sa.Text)


def conditions(labels: ColumnElement[Any], requirements: Sequence[Requirement]) -> list[ColumnElement[bool]]:
    """Return a condition per requirement that is true or false of any labels, as `domain.selector.matches` says."""
    return [clause(labels, requirement.operator, *arguments(requirement)) for requirement in requirements]


def shape(requirements: Sequence[Requirement]) -> Hashable:
    """Return what the SQL text of the conditions depends on: equal exactly when the texts are."""
    return tuple(requirement.operator for requirement in requirements)


def arguments(requirement: Requirement) -> tuple[BindParameter[Any], ...]:
    """Return what the requirement's clause binds, each with its type and value."""
    key = sa.literal(requirement.key, sa.Text)
    match requirement.operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return (key,)
        case Operator.IN:
            return (sa.literal([{requirement.key: value} for value in requirement.values], _JSONB_ARRAY),)
        case Operator.NOT_IN:
            return (key, sa.literal(list(requirement.values), TEXT_ARRAY))
        case _:
            return (key, sa.literal(Decimal(requirement.values[0]), sa.Numeric))


def clause(labels: ColumnElement[Any], operator: Operator, *bound: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition of an operator over parameters with the types of `arguments`."""
    match operator:
        case Operator.EXISTS:
            return _has(labels, *bound)
        case Operator.DOES_NOT_EXIST:
            return sa.not_(_has(labels, *bound))
        case Operator.IN:
            return labels.op("@>", return_type=sa.Boolean())(sa.func.any(*bound))
        case Operator.NOT_IN:
            # No index finds what is absent; of the ways to look at every row this is the fastest.
            key, values = bound
            return (_value(labels, key) == sa.func.any(values)).is_not(sa.true())
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
