"""What a GraphQL type and its fields are declared with: the row class, the Python name, and how a column is written."""

from typing import Any, Final

import msgspec
import sqlalchemy as sa
from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLOutputType,
    get_named_type,
    is_list_type,
    is_non_null_type,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine
from strawberry.schema.schema_converter import GraphQLCoreConverter

from db.views.selection import Form, Names, Writing
from db.views.view import VIEWS, View
from schema.connections import Connection

_SQL_TYPES: Final[dict[str, tuple[type[TypeEngine[Any]], ...]]] = {
    "ID": (sa.Text, sa.String),
    "String": (sa.Text, sa.String),
    "Cursor": (sa.Text,),
    "Int": (sa.Integer,),
    "Float": (sa.Double,),
    "Boolean": (sa.Boolean,),
    "DateTime": (sa.DateTime,),
    "JSON": (JSONB,),
}
"""Columns whose JSON is what the scalar's is; GraphQL's Int has 32 bits."""


def python_name(definition: GraphQLField) -> str:
    """Return the name under which a field is declared."""
    return str(definition.extensions[GraphQLCoreConverter.DEFINITION_BACKREF].python_name)


def view_of(kind: GraphQLNamedType) -> View | None:
    """Return how the rows of a type are read, if it names a row class."""
    row = getattr(origin_of(kind), "row", None)
    return None if row is None else VIEWS.get(row)


def is_read(definition: GraphQLField) -> bool:
    """Say whether a root field is a read: a page, rows of one kind, anything with an id, or the feed's cursor."""
    named = get_named_type(definition.type)
    if isinstance(named, GraphQLObjectType) and is_connection(named):
        named = get_named_type(named.fields["nodes"].type)
    return view_of(named) is not None or named.name in {"Node", "Cursor"}


def origin_of(kind: GraphQLNamedType) -> Any:  # noqa: ANN401 - any class
    """Return the class that Strawberry made a type of, None for a type that is not of a class."""
    definition = kind.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return getattr(definition, "origin", None)


def is_connection(kind: GraphQLObjectType) -> bool:
    """Say whether a type is a page of rows."""
    return issubclass(origin_of(kind), Connection)


def nullable(kind: GraphQLOutputType) -> GraphQLOutputType:
    """Return a type without its exclamation mark."""
    return kind.of_type if is_non_null_type(kind) else kind


def writing_of(kind: GraphQLOutputType, column: TypeEngine[Any] | None) -> Writing | None:
    """Say how a column's value is written as that scalar; None when it is not what the scalar takes."""
    inner = nullable(kind)
    if is_list_type(inner):
        item = get_named_type(inner)
        of = column.item_type if isinstance(column, sa.ARRAY) else None
        plain = column is None or (of is not None and isinstance(of, sa.String))
        return Form.PLAIN if plain and item.name in {"ID", "String"} else None
    if isinstance(inner, GraphQLEnumType):
        return Names(tuple((str(value.value), name) for name, value in inner.values.items()))
    name = get_named_type(inner).name
    if name == "BigInt":
        return Form.TEXT
    if column is None:
        return Form.PLAIN if name in _SQL_TYPES else None
    right = isinstance(column, _SQL_TYPES.get(name, ())) and not (name == "Int" and isinstance(column, sa.BigInteger))
    return Form.PLAIN if right else None


def defaults_of(document: type[msgspec.Struct] | None) -> dict[str, Any]:
    """Return what stands for an absent key of a document, by Python name."""
    if document is None or not issubclass(document, msgspec.Struct):
        return {}
    found: dict[str, Any] = {}
    for each in msgspec.structs.fields(document):
        if each.default is not msgspec.NODEFAULT:
            found[each.name] = each.default
        elif each.default_factory is not msgspec.NODEFAULT:
            found[each.name] = each.default_factory()
    return found
