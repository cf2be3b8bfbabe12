"""Values as the JSON that GraphQL shows: written by PostgreSQL, the same as the executor writes them."""

import re
from typing import Any, Final

import orjson
import sqlalchemy as sa
from sqlalchemy import Select, Subquery
from sqlalchemy.dialects.postgresql import JSON, JSONB

from db.views.draft import Labelled
from db.views.selection import DocumentLeaf, Form, Leaf, Names, Writing
from db.views.view import Expression, View

IDENTIFIER_BYTES_MAX: Final = 63
"""PostgreSQL cuts longer names off without a word (NAMEDATALEN - 1)."""
COLUMNS_MAX: Final = 1600
"""What a select list may hold (MaxTupleAttributeNumber is 1,664)."""
_JSON_NULL: Final = sa.literal_column("'null'::jsonb", JSONB)
_OURS: Final = re.compile(r"[\w .:/+-]*")


class NotCompilable(Exception):  # noqa: N818 - an answer: the ordinary way takes over
    """The selection cannot be said in SQL; the message says why."""


def text_literal(text: str) -> Expression:
    """Return a constant of ours; values of clients are bound, never written."""
    if not _OURS.fullmatch(text):
        raise NotCompilable(f"{text!r} has characters that a constant may not have")
    return sa.literal_column(f"'{text}'", sa.Text)


def named(fields: Labelled) -> Labelled:
    """Return the fields if they can be columns of a select; raises NotCompilable."""
    if len(fields) > COLUMNS_MAX:
        raise NotCompilable(f"{len(fields)} fields of one object")
    for key, _ in fields:
        if len(key) > IDENTIFIER_BYTES_MAX:
            raise NotCompilable(f"the response name {key!r} is longer than {IDENTIFIER_BYTES_MAX} bytes")
    return fields


def object_of(row: Subquery) -> Expression:
    """Return a row as a JSON object."""
    return sa.func.row_to_json(row.table_valued(), type_=JSON)


def list_of(rows: Subquery) -> Expression:
    """Return rows as a JSON list of objects; never null."""
    return sa.func.array_to_json(sa.func.array(sa.select(rows.table_valued()).scalar_subquery()), type_=JSON)


def one_of(rows: Subquery) -> Expression:
    """Return the only row as a JSON object, null when there is none."""
    return sa.select(object_of(rows)).scalar_subquery()


def present(expression: Expression) -> Expression:
    """Return the expression, which stops the statement where it is null."""
    return sa.func.coalesce(expression, sa.cast(sa.func.absent_value(), expression.type), type_=expression.type)


def leaf(view: View, field: Leaf) -> Expression:
    """Return a column's value."""
    found = view.column(field.name)
    if found is not None:
        never_null = isinstance(found, sa.Column) and not found.nullable
        return _written(found, field.writing, required=field.required, never_null=never_null)
    key = view.keys[field.name]
    return _inside(view.table.c[key.column], key.key, field.writing, required=field.required, default=None)


def document_leaf(document: Expression, field: DocumentLeaf) -> Expression:
    """Return a value inside a document."""
    return _inside(document, field.name, field.writing, required=field.required, default=field.default)


def inside(document: Expression, key: str, default: Any = None) -> Expression:  # noqa: ANN401 - any JSON value
    """Return what a document has under a key, as JSON."""
    found = document.op("->", return_type=JSONB())(text_literal(key))
    return found if default is None else sa.func.coalesce(found, json_literal(default), type_=JSONB())


def json_literal(value: Any) -> Expression:  # noqa: ANN401 - any JSON value
    """Return a constant of ours as JSON: the default of a document's field."""
    text = orjson.dumps(value).decode()
    if "'" in text or "\\" in text or ":" in text:
        raise NotCompilable(f"{text} has characters that a constant may not have")
    return sa.literal_column(f"'{text}'::jsonb", JSONB)


def _inside(document: Expression, key: str, writing: Writing, *, required: bool, default: Any) -> Expression:  # noqa: ANN401
    if writing is Form.PLAIN:
        found = inside(document, key, default)
        # JSON has a null of its own, which is a value to SQL.
        return present(sa.func.nullif(found, _JSON_NULL, type_=JSONB())) if required and default is None else found
    text: Expression = document.op("->>", return_type=sa.Text())(text_literal(key))
    if default is not None:
        text = sa.func.coalesce(text, text_literal(str(default)), type_=sa.Text())
    return _written(text, writing, required=required, never_null=default is not None)


def _written(expression: Expression, writing: Writing, *, required: bool, never_null: bool) -> Expression:
    match writing:
        case Form.TEXT:
            expression = sa.cast(expression, sa.Text)
        case Names():
            return _name(expression, writing, required=required or never_null)
    return present(expression) if required and not never_null else expression


def _name(expression: Expression, writing: Names, *, required: bool) -> Expression:
    # Without a name there is an error to tell, which is the ordinary execution's work.
    names = {text_literal(value): text_literal(name) for value, name in writing.names}
    found = sa.case(names, value=expression, else_=sa.func.absent_value(type_=sa.Text))
    return found if required else sa.case((expression.is_(None), sa.null()), else_=found)


def row_of(columns: Labelled) -> Select[Any]:
    """Return a select of the enclosing row's own values: it has no FROM."""
    return sa.select(*(column.label(key) for key, column in columns)).correlate_except()
