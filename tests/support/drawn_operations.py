"""Generated operations: what the schema lets clients select of the reads, in every way of writing it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_leaf_type,
)
from hypothesis import strategies as st

from schema.declared import is_read
from tests.support.both import Operation
from tests.support.drawn_arguments import Arguments, Draw
from tests.support.drawn_scopes import TYPENAME, Alike, Room, Scope
from tests.support.not_compiled import NOT_COMPILED

_SELECTIONS: Final = 60
"""How much a document may select before it comes to its end."""
_WAYS: Final = [*["field"] * 9, "typename", "inline", "spread"]
_WAYS_OF_INTERFACES: Final = ["field", "typename", *["inline"] * 4, *["spread"] * 2]
"""What an interface stands for is told by its fragments."""
_ALIASES: Final = ("a", "b", "x1", "t2", "select", "place", "id", "name", "totalCount", "_", "A" * 30)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A named fragment, finished: others may spread it too."""

    name: str
    on: str
    text: str
    scope: Scope
    variables: frozenset[str]
    spreads: frozenset[str]


@dataclass(slots=True)
class Needs:
    """What a definition needs: its own variables, and the fragments that it spreads."""

    variables: set[str] = field(default_factory=set)
    spreads: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Drawing:
    """A document in the making."""

    draw: Draw
    schema: GraphQLSchema
    arguments: Arguments
    fragments: dict[str, Fragment] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)
    left: int = _SELECTIONS

    # ---- selections ----------------------------------------------------------------------------------------------

    def operation(self) -> tuple[str, Needs]:
        """Return an operation's selection of root fields, and what it needs."""
        query = self.schema.query_type
        if query is None:
            raise TypeError("the schema has no queries")
        with self._defining() as needs:
            room = Room(Scope())
            parts = [self._any_field(query, room) for _ in range(self.draw(st.integers(1, 3)))]
            return "{ " + " ".join(part for part in parts if part is not None) + " }", needs

    def _selection(self, kind: GraphQLNamedType, room: Room) -> str:
        """Return a selection set of a type, braces included."""
        count = self.draw(st.integers(1, 4)) if self.left > 0 else 1
        self.left -= count
        parts = [part for _ in range(count) if (part := self._part(kind, room)) is not None]
        if not parts:
            room.scope.taken["__typename"] = (TYPENAME, Scope())
        return "{ " + (" ".join(parts) or "__typename") + " }"

    def _part(self, kind: GraphQLNamedType, room: Room) -> str | None:
        ways = _WAYS_OF_INTERFACES if isinstance(kind, GraphQLInterfaceType) else _WAYS
        match self.draw(st.sampled_from(ways)) if self.left > 0 else "field":
            case "typename":
                return self._typename(room.scope)
            case "inline":
                return self._inline(kind, room)
            case "spread":
                return self._spread(kind, room)
            case _:
                return self._any_field(kind, room)

    # ---- fields --------------------------------------------------------------------------------------------------

    def _any_field(self, kind: GraphQLNamedType, room: Room) -> str | None:
        fields: dict[str, GraphQLField] = getattr(kind, "fields", {})
        # A read of what is not compiled is executed: it would be compared with itself.
        names = [name for name in fields if f"{kind.name}.{name}" not in NOT_COMPILED]
        if kind is self.schema.query_type:
            return self._root(kind, fields, room)
        deep = [name for name in names if not is_leaf_type(get_named_type(fields[name].type))]
        leaves = sorted(set(names) - set(deep))
        roomy = sorted(name for name in deep if room.has_room_for(fields[name]) and self.left > 0)
        # As often what has fields of its own as what has none.
        chosen = roomy if roomy and (not leaves or self.draw(st.booleans())) else leaves
        if not chosen:
            return self._typename(room.scope)
        name = self.draw(st.sampled_from(chosen))
        return self._field(kind, name, fields[name], room)

    def _root(self, kind: GraphQLNamedType, fields: dict[str, GraphQLField], room: Room) -> str | None:
        name = self.draw(st.sampled_from(sorted(name for name, known in fields.items() if is_read(known))))
        return self._field(kind, name, fields[name], room)

    def _field(self, kind: GraphQLNamedType, name: str, known: GraphQLField, room: Room) -> str | None:
        key = self._key(name)
        arguments, used = self.arguments.of_field(kind.name, name, known.args)
        alike = Alike(name, arguments, str(known.type), frozenset(used))
        before = room.scope.at(key)
        if before is not None and (before.field, before.kind) == (name, alike.kind) and self.draw(st.booleans()):
            alike = before  # the same once more: what is selected is merged
        elif before not in {None, alike}:
            key = f"{name}{len(room.scope.taken)}"
            if room.scope.at(key) is not None:
                return None
        below = room.scope.taken.setdefault(key, (alike, Scope()))[1]
        self.needs.variables |= alike.variables
        written = f"{_aliased(key, name)}{alike.arguments}{self._directive()}"
        named = get_named_type(known.type)
        return written if is_leaf_type(named) else f"{written} {self._selection(named, room.below(known, below))}"

    def _typename(self, scope: Scope) -> str | None:
        key = self._key("__typename")
        if scope.taken.setdefault(key, (TYPENAME, Scope()))[0] != TYPENAME:
            return None
        return f"{_aliased(key, '__typename')}{self._directive()}"

    def _key(self, name: str) -> str:
        return str(self.draw(st.sampled_from(_ALIASES))) if self.draw(st.integers(0, 4)) == 0 else name

    def _directive(self) -> str:
        if self.draw(st.integers(0, 7)):
            return ""
        condition, used = self.arguments.condition()
        self.needs.variables |= used
        return f" @{self.draw(st.sampled_from(['skip', 'include']))}(if: {condition})"

    # ---- fragments -----------------------------------------------------------------------------------------------

    def _inline(self, kind: GraphQLNamedType, room: Room) -> str:
        on = self.draw(st.sampled_from([None, *self._overlapping(kind)]))
        inner = kind if on is None else self.schema.type_map[on]
        return f"...{'' if on is None else f' on {on}'}{self._directive()} {self._selection(inner, room)}"

    def _spread(self, kind: GraphQLNamedType, room: Room) -> str | None:
        overlapping = self._overlapping(kind)
        known = [each for each in self.fragments.values() if each.on in overlapping and room.scope.takes(each.scope)]
        if known and self.draw(st.booleans()):
            fragment = self.draw(st.sampled_from(known))
        else:
            fragment = self._fragment(self.draw(st.sampled_from(overlapping)), room)
            if not room.scope.takes(fragment.scope):
                return None
            self.fragments[fragment.name] = fragment
        room.scope.take(fragment.scope)
        self.needs.spreads.add(fragment.name)
        return f"...{fragment.name}{self._directive()}"

    def _fragment(self, on: str, room: Room) -> Fragment:
        scope = Scope()
        with self._defining() as needs:
            text = self._selection(self.schema.type_map[on], room.smaller(scope))
        name = f"F{len(self.fragments)}"
        return Fragment(name, on, text, scope, frozenset(needs.variables), frozenset(needs.spreads))

    def _overlapping(self, kind: GraphQLNamedType) -> list[str]:
        if isinstance(kind, GraphQLInterfaceType):
            return sorted(each.name for each in (kind, *self.schema.get_possible_types(kind)))
        if isinstance(kind, GraphQLObjectType):
            return sorted(each.name for each in (kind, *kind.interfaces))
        raise TypeError(f"{kind} has no fields")

    @contextmanager
    def _defining(self) -> Iterator[Needs]:
        outer, self.needs = self.needs, Needs()
        try:
            yield self.needs
        finally:
            self.needs = outer

    def reached(self, spreads: set[str]) -> dict[str, Fragment]:
        """Return the fragments that are spread, at any depth."""
        found: dict[str, Fragment] = {}
        waiting = sorted(spreads)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self.fragments[name]
                waiting += sorted(found[name].spreads)
        return found


@st.composite
def operations(draw: Draw, schema: GraphQLSchema) -> list[Operation]:
    """Draw a document of one or two operations; each is sent with its variables, and once more with others."""
    drawing = Drawing(draw, schema, Arguments(draw))
    made = {name: drawing.operation() for name in ["One", "Two"][: draw(st.sampled_from([1, 1, 2]))]}
    definitions: list[str] = []
    variables: dict[str, list[dict[str, Any]]] = {}
    fragments: dict[str, Fragment] = {}
    for name, (selection, needs) in made.items():
        reached = drawing.reached(needs.spreads)
        fragments |= reached
        used = needs.variables.union(*(each.variables for each in reached.values()))
        definitions.append(f"query {name}{drawing.arguments.declared(used)} {selection}")
        variables[name] = drawing.arguments.sent(used)
    definitions += [f"fragment {each.name} on {each.on} {each.text}" for each in fragments.values()]
    document = "\n".join(definitions)
    return [Operation(document, sent, name) for name in made for sent in variables[name]]


def _aliased(key: str, name: str) -> str:
    return name if key == name else f"{key}: {name}"
