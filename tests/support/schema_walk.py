"""Every field of the schema that a compiled read may select, with a path that leads to it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from graphql import (
    GraphQLField,
    GraphQLInputType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
    is_required_argument,
)

from tests.support.not_compiled import NOT_COMPILED

_LITERALS: Final = {"DateTime": '"2026-03-05T00:00:00Z"', "Int": "1", "Boolean": "true"}


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a type. `path` has a root field and what is selected below it, up to the type's own fields."""

    kind: str
    name: str
    field: GraphQLField
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}.{self.name}"

    @property
    def written(self) -> str:
        """The field with what has to be said of it."""
        needed = [
            f"{key}: {_literal(each.type)}" for key, each in self.field.args.items() if is_required_argument(each)
        ]
        return f"{self.name}({', '.join(needed)})" if needed else self.name

    @property
    def selection(self) -> str:
        """The field with the least that may be selected of it."""
        return self.written if is_leaf_type(get_named_type(self.field.type)) else f"{self.written} {{ __typename }}"


def nested(path: tuple[str, ...], inner: str) -> str:
    """Return an operation that selects this at the path's end."""
    for each in reversed(path):
        inner = f"{each} {{ {inner} }}"
    return f"{{ {inner} }}"


def walk(schema: GraphQLSchema) -> Iterator[Place]:
    """Yield the fields, once for each type, lists first: they have rows whatever they are asked for."""
    if schema.query_type is None:
        raise TypeError("the schema has no queries")
    waiting: deque[tuple[tuple[str, ...], GraphQLObjectType]] = deque([((), schema.query_type)])
    seen: set[str] = set()
    while waiting:
        path, kind = waiting.popleft()
        if kind.name in seen:
            continue
        seen.add(kind.name)
        for name, field in sorted(kind.fields.items(), key=_needs):
            place = Place(kind.name, name, field, path)
            yield place
            if str(place) not in NOT_COMPILED:
                below = _below(schema, get_named_type(field.type))
                waiting += [((*path, place.written, *more), found) for more, found in below]


def _needs(named: tuple[str, GraphQLField]) -> int:
    return sum(is_required_argument(each) for each in named[1].args.values())


def _below(schema: GraphQLSchema, kind: GraphQLNamedType) -> list[tuple[tuple[str, ...], GraphQLObjectType]]:
    """Return the types whose fields a selection of this type may have, each with what leads to it."""
    if isinstance(kind, GraphQLInterfaceType):
        return [((f"... on {each.name}",), each) for each in schema.get_possible_types(kind)]
    return [((), kind)] if isinstance(kind, GraphQLObjectType) else []


def _literal(kind: GraphQLInputType) -> str:
    return _LITERALS.get(get_named_type(kind).name, '"x"')
