"""Loading rows as they are: what the executor visits field by field, from the same declarations."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Select

from db.views.draft import Draft, Labelled
from db.views.selection import Asked
from db.views.view import Relation, View

_ONE = sa.literal_column("1", sa.BigInteger)


def row_rows(view: View, asked: Asked) -> Select[Any]:
    """Return the statement of the rows that fit, without a page: the first in the order, or all."""
    draft = Draft([asked])
    columns = _columns(view)
    opened = draft.open(view, 0, [column for _, column in columns])
    return opened.sorted(columns)


def page_rows(view: View, asked: Asked) -> Select[Any]:
    """Return the statement of a page's rows, each with its cursor, and one more when there is a next page."""
    draft = Draft([asked])
    bound = draft.bound(0)
    columns = [*_columns(view), *_cursor(asked, bound.before_key, bound.behind_key)]
    opened = draft.open(view, 0, [column for _, column in columns], paged=True)
    return opened.sorted(columns).limit(bound.first + _ONE)


def count_rows(view: View, asked: Asked) -> Select[Any]:
    """Return the statement that counts the whole list."""
    opened = Draft([asked]).open(view, 0, ())
    return sa.select(sa.func.count()).select_from(opened.source).where(*opened.where)


def related_rows(parent: View, relation: Relation, asked: Asked) -> Select[Any]:
    """Return the statement of what belongs to many rows: the same page of each when it is paged.

    The parents' keys are the last value. The columns `of_parent` and `place` say whose a row is, and where it stands.
    """
    draft = Draft([asked])
    bound = draft.bound(0)
    view = relation.view
    columns = _columns(view)
    if relation.paged:
        columns = [*columns, *_cursor(asked, bound.before_key, bound.behind_key)]
    opened = draft.open(view, 0, [column for _, column in columns], relation=relation, paged=relation.paged)
    clauses = opened.clauses()
    place = sa.func.row_number().over(order_by=clauses) if clauses else _ONE
    inner = opened.sorted(columns).add_columns(place.label("place"))
    if relation.paged:
        inner = inner.limit(bound.first + _ONE)
    elif relation.first_only:
        inner = inner.limit(_ONE)
    found = inner.lateral("found")
    return (
        sa.select(parent.identity.label("of_parent"), *found.c)
        .select_from(parent.table.join(found, sa.true()))
        .where(parent.identity == sa.func.any(draft.bind(draft.end, sa.ARRAY(parent.identity.type))))
        .order_by(parent.identity, found.c.place)
    )


def summary_rows(view: View, name: str, asked: Asked) -> Select[Any]:
    """Return the statement of one part of a summary."""
    relation = view.relations[name]
    columns = _columns(relation.view)
    opened = Draft([asked]).open(relation.view, None, [column for _, column in columns], relation=relation)
    return opened.sorted(columns)


def related_counts(parent: View, relation: Relation, asked: Asked) -> Select[Any]:
    """Return the statement that counts what belongs to each of many rows."""
    draft = Draft([asked])
    opened = draft.open(relation.view, 0, (), relation=relation)
    counted = sa.select(sa.func.count()).select_from(opened.source).where(*opened.where)
    total = counted.correlate_except(*opened.own).scalar_subquery()
    return sa.select(parent.identity.label("of_parent"), total.label("count")).where(
        parent.identity == sa.func.any(draft.bind(draft.end, sa.ARRAY(parent.identity.type)))
    )


def _columns(view: View) -> Labelled:
    name = view.variant if view.variant is not None else sa.literal_column(f"'{view.name}'", sa.Text)
    return [("typename", name), *view.columns().items()]


def _cursor(asked: Asked, before: Any, behind: Any) -> Labelled:  # noqa: ANN401 - SQLAlchemy's expressions
    return [("cursor", asked.order.cursor(before, behind))] if asked.order else []
