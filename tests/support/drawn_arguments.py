"""Arguments of generated operations: as literals and as variables, given, null or left out."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLNonNull,
    get_named_type,
    is_list_type,
    is_non_null_type,
)
from hypothesis import strategies as st

from tests.support.drawn_values import mostly, scalar

Draw = Callable[..., Any]
ABSENT: Final = object()
_CONDITION: Final = GraphQLNonNull(GraphQLBoolean)


@dataclass(frozen=True, slots=True)
class Name:
    """An enum's value, which is written without quotes in a document."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """A variable in the place of a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the document: its type, its default and what is sent, each ABSENT where there is none."""

    kind: str
    default: Any
    sent: Any
    again: Callable[[], Any]
    """Draws another value to send."""

    def declared(self, name: str) -> str:
        """Return its declaration."""
        return f"${name}: {self.kind}" + ("" if self.default is ABSENT else f" = {_literal(self.default)}")


@dataclass(slots=True)
class Arguments:
    """Draws values, and makes variables of some of them."""

    draw: Draw
    variables: dict[str, Variable] = field(default_factory=dict)

    def of_field(self, owner: str, name: str, known: Mapping[str, GraphQLArgument]) -> tuple[str, set[str]]:
        """Return a field's arguments as they are written, and the variables in them."""
        used: set[str] = set()
        written = []
        for key, argument in known.items():
            often = is_non_null_type(argument.type) or (key == "first" and self.draw(st.integers(0, 3)) > 0)
            if often or self.draw(st.integers(0, 2)) == 0:
                value = self._value(f"{owner}.{name}", key, argument.type, used)
                written.append(f"{key}: {_literal(value)}")
        return f"({', '.join(written)})" if written else "", used

    def condition(self) -> tuple[str, set[str]]:
        """Return the condition of a directive, and the variables in it."""
        used: set[str] = set()
        return _literal(self._value("", "if", _CONDITION, used)), used

    def sent(self, used: Collection[str]) -> list[dict[str, Any]]:
        """Return the variables as two requests of the same document send them."""
        known = {name: self.variables[name] for name in sorted(used)}
        once = {name: each.sent for name, each in known.items()}
        again = {name: each.again() for name, each in known.items()}
        return [_given(once), _given(again)] if known else [{}]

    def declared(self, used: Collection[str]) -> str:
        """Return the variables as an operation declares them."""
        written = [self.variables[name].declared(name) for name in sorted(used)]
        return f"({', '.join(written)})" if written else ""

    def _value(self, place: str, key: str, kind: GraphQLInputType, used: set[str] | None) -> Any:  # noqa: ANN401
        """Draw a value of a type, or a variable that has one; without `used` no variable stands in it."""
        if used is None or self.draw(st.integers(0, 2)) > 0:
            return self._constant(place, key, kind, used)
        same = [name for name, known in self.variables.items() if known.kind == str(kind)]
        if same and self.draw(st.booleans()):
            name = str(self.draw(st.sampled_from(same)))
        else:
            name = f"v{len(self.variables)}"
            self.variables[name] = self._variable(place, key, kind)
        used.add(name)
        return Use(name)

    def _variable(self, place: str, key: str, kind: GraphQLInputType) -> Variable:
        inner = kind.of_type if is_non_null_type(kind) else kind

        def some() -> Any:  # noqa: ANN401
            return self._some(place, key, inner, None)

        def anything() -> Any:  # noqa: ANN401
            # Where no null may stand, a default makes up for it; a null that is sent is refused in its place.
            often = [ABSENT, *[some()] * 3] if is_non_null_type(kind) else [ABSENT, None, *[some()] * 3]
            return self.draw(mostly(often, [None]))

        way = self.draw(st.integers(0, 5))
        if way == 0 or (is_non_null_type(kind) and way < 4):
            return Variable(f"{inner}!", ABSENT, some(), some)
        default = some() if way == 1 or is_non_null_type(kind) else ABSENT
        return Variable(str(inner), default, anything(), anything)

    def _constant(self, place: str, key: str, kind: GraphQLInputType, used: set[str] | None) -> Any:  # noqa: ANN401
        if is_non_null_type(kind):
            return self._some(place, key, kind.of_type, used)
        return None if self.draw(st.integers(0, 9)) == 0 else self._some(place, key, kind, used)

    def _some(self, place: str, key: str, kind: GraphQLInputType, used: set[str] | None) -> Any:  # noqa: ANN401
        if is_list_type(kind):
            items = [self._value(place, key, kind.of_type, used) for _ in range(self.draw(mostly([1, 2, 3], [0])))]
            # A list of one may be written without its brackets.
            bare = len(items) == 1 and not isinstance(items[0], Use) and self.draw(st.booleans())
            return items[0] if bare else items
        named = get_named_type(kind)
        if isinstance(named, GraphQLInputObjectType):
            chosen = self.draw(st.lists(st.sampled_from(sorted(named.fields)), max_size=3, unique=True))
            return {each: self._value(named.name, each, named.fields[each].type, used) for each in chosen}
        if isinstance(named, GraphQLEnumType):
            return Name(self.draw(st.sampled_from(sorted(named.values))))
        return self.draw(scalar(place, key, named.name))


def _literal(value: Any) -> str:  # noqa: ANN401 - any value that a type takes
    """Write a value as a document has it."""
    match value:
        case Use(name):
            return f"${name}"
        case Name(text):
            return text
        case dict():
            return "{" + ", ".join(f"{key}: {_literal(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(_literal(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in values.items() if value is not ABSENT}


def _json(value: Any) -> Any:  # noqa: ANN401
    match value:
        case Name(text):
            return text
        case dict():
            return {key: _json(item) for key, item in value.items()}
        case list():
            return [_json(item) for item in value]
        case _:
            return value
