"""From what a client selects of a read to what the database is asked, once for each operation.

Fields that cannot be said in SQL are named with the reason; a read that selects one of them is executed field by
field. What a read may cost is reckoned on the same tree, whichever way it is executed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from graphql import (
    FieldNode,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLOutputType,
    VariableNode,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)
from graphql.execution.collect_fields import FieldDetails
from graphql.execution.executor import Executor
from graphql.execution.values import get_argument_values
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine
from strawberry.schema.schema_converter import GraphQLCoreConverter

from db.views.documents import PART_RELATIONS
from db.views.json_text import COLUMNS_MAX, IDENTIFIER_BYTES_MAX
from db.views.selection import (
    Asked,
    Constant,
    DocumentLeaf,
    DocumentPart,
    EdgeField,
    Field,
    Form,
    Leaf,
    Names,
    Nested,
    PageField,
    PagePart,
    PageSelection,
    RowSelection,
    Same,
    Selection,
    Variants,
    Writing,
)
from db.views.view import VIEWS, View
from domain.documents.document import wire_name
from resolvers.reads import Related
from schema.connections import Connection

Details = list[FieldDetails]
_PARTS: Final = {
    "edges": PagePart.EDGES,
    "nodes": PagePart.NODES,
    "page_info": PagePart.PAGE_INFO,
    "total_count": PagePart.TOTAL_COUNT,
}
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
_OPAQUE_LIST_SIZE: Final = 16
"""What a list is reckoned with whose length nothing says."""


@dataclass(frozen=True, slots=True)
class Argued:
    """A nested relation's field whose arguments are read anew for each request."""

    definition: GraphQLField
    details: FieldDetails
    view: View
    constant: bool

    def asked(self, executor: Executor[Any]) -> Asked:
        """Return what the arguments ask for, by the field's own resolver; raises what it refuses."""
        node = self.details.node
        given = get_argument_values(
            self.definition,
            node,
            executor.variable_values,
            self.details.fragment_variable_values,
            executor.hide_suggestions,
        )
        if self.definition.resolve is None:
            raise TypeError(f"{node.name.value} has no resolver")
        related = self.definition.resolve(self.view, None, **given)
        if not isinstance(related, Related):
            raise TypeError(f"{node.name.value} of {self.view.name} is declared as a relation and resolves to none")
        return related.asked


@dataclass(slots=True)
class Cost:
    """How many values a selection has in each row, and what is nested in it, each with how many rows."""

    values: int = 0
    nested: "list[tuple[int, int | None, Cost]]" = field(default_factory=list)

    def of(self, asked: Sequence[Asked]) -> int:
        """Return how many values one row may bring."""
        total = self.values
        for size, index, cost in self.nested:
            first = None if index is None else asked[index].first
            total += (size if first is None else first) * cost.of(asked)
        return total


@dataclass(frozen=True, slots=True)
class Opaque:
    """A field that is not compiled, and why."""

    place: str
    reason: str


@dataclass(slots=True)
class Translation:
    """A selection in the database's terms, the nested arguments it takes, and what it may cost."""

    selection: Selection | PageSelection | None = None
    argued: list[Argued] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    opaque: list[Opaque] = field(default_factory=list)


def translate(executor: Executor[Any], kind: GraphQLOutputType, details: Details, view: View) -> Translation:
    """Translate what is selected of a read of that view."""
    made = Translation()
    named = get_named_type(kind)
    translator = _Translator(executor, made)
    if isinstance(named, GraphQLObjectType) and _is_connection(named):
        made.selection = translator.page(named, details, view, made.cost)
        return made
    runtime = executor.schema.type_map[view.name] if is_abstract_type(named) else named
    if isinstance(runtime, GraphQLObjectType):
        made.selection = translator.row(runtime, details, view, made.cost)
    return made


class _Translator:
    def __init__(self, executor: Executor[Any], made: Translation) -> None:
        self._executor = executor
        self._made = made

    # ---- rows ----------------------------------------------------------------------------------------------------

    def rows(self, named: GraphQLNamedType, details: Details, view: View, cost: Cost) -> RowSelection:
        """Translate rows of one type, or of the types that an interface stands for."""
        if isinstance(named, GraphQLInterfaceType):
            kinds = self._executor.schema.get_possible_types(named)
            inner = [Cost() for _ in kinds]
            of = {kind.name: self.row(kind, details, view, each) for kind, each in zip(kinds, inner, strict=True)}
            most = max(inner, key=lambda each: each.values, default=Cost())
            cost.values += most.values
            cost.nested += most.nested
            return Variants(view, of)
        if isinstance(named, GraphQLObjectType):
            return self.row(named, details, view, cost)
        raise TypeError(f"{named} has no fields")

    def row(self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost) -> Selection:
        """Translate rows of one type."""
        fields: list[Field] = []
        for key, name, found in self._selected(kind, details, cost):
            if name == "__typename":
                fields.append(Constant(key, kind.name))
                continue
            made = self._field(kind, kind.fields[name], key, found, view, cost)
            if made is not None:
                fields.append(made)
        return Selection(view, tuple(fields))

    def _field(  # noqa: PLR0913, PLR0917, PLR0911 - a field in its place, and one answer per kind of field
        self, kind: GraphQLObjectType, definition: GraphQLField, key: str, found: Details, view: View, cost: Cost
    ) -> Field | None:
        name = python_name(definition)
        required = is_non_null_type(definition.type)
        relation = view.relations.get(name)
        if relation is not None:
            return self._nested(definition, key, name, found, view, cost)
        named = get_named_type(definition.type)
        if name in view.same and isinstance(named, GraphQLObjectType):
            return Same(key, self.row(named, found, view, cost))
        if (name in view.documents or name in view.keys) and isinstance(named, GraphQLObjectType):
            many = is_list_type(_nullable(definition.type))
            return DocumentPart(key, name, many, required, self._part(named, found, _below(cost, many=many)))
        if not is_leaf_type(named) or definition.args or not _is_plain(definition):
            self._opaque(kind, definition, found, cost, "a Python resolver computes it")
            return None
        column = view.column(name)
        if column is None and name not in view.keys and not (name == "cursor" and view.feed):
            self._opaque(kind, definition, found, cost, "its row has no such column")
            return None
        writing = _writing(definition.type, None if column is None else column.type)
        if writing is None:
            self._opaque(kind, definition, found, cost, f"its column's type is not that of {definition.type}")
            return None
        return Leaf(key, name, writing, required)

    def _nested(  # noqa: PLR0913, PLR0917
        self, definition: GraphQLField, key: str, name: str, found: Details, view: View, cost: Cost
    ) -> Nested:
        relation = view.relations[name]
        named = get_named_type(definition.type)
        index = None
        if definition.args:
            # The root's arguments are the first.
            index = len(self._made.argued) + 1
            self._made.argued.append(Argued(definition, found[0], view, constant=_is_constant(found[0])))
        inner = Cost()
        # A page asks for its `first` rows itself.
        cost.nested.append((relation.size, None if relation.paged else index, inner))
        selection: RowSelection | PageSelection
        if relation.paged and isinstance(named, GraphQLObjectType):
            cost.nested[-1] = (1, None, inner)
            selection = self.page(named, found, relation.view, inner, index or 0)
        else:
            selection = self.rows(named, found, relation.view, inner)
        return Nested(key, name, selection, is_non_null_type(definition.type), index)

    # ---- documents -----------------------------------------------------------------------------------------------

    def _part(
        self, kind: GraphQLObjectType, details: Details, cost: Cost
    ) -> tuple[DocumentLeaf | DocumentPart | Constant | Nested, ...]:
        fields: list[DocumentLeaf | DocumentPart | Constant | Nested] = []
        defaults = _defaults(getattr(_origin(kind), "document", None))
        for key, name, found in self._selected(kind, details, cost):
            if name == "__typename":
                fields.append(Constant(key, kind.name))
                continue
            definition = kind.fields[name]
            made = self._part_field(kind, definition, key, found, cost, defaults)
            if made is not None:
                fields.append(made)
        return tuple(fields)

    def _part_field(  # noqa: PLR0913, PLR0917
        self,
        kind: GraphQLObjectType,
        definition: GraphQLField,
        key: str,
        found: Details,
        cost: Cost,
        defaults: dict[str, Any],
    ) -> DocumentLeaf | DocumentPart | Nested | None:
        name = python_name(definition)
        named = get_named_type(definition.type)
        required = is_non_null_type(definition.type)
        if name in PART_RELATIONS:
            relation = PART_RELATIONS[name]
            return Nested(key, name, self.rows(named, found, relation.view, _below(cost, many=True)), required)
        if not _is_plain(definition):
            self._opaque(kind, definition, found, cost, "a Python resolver computes it")
            return None
        if isinstance(named, GraphQLObjectType):
            many = is_list_type(_nullable(definition.type))
            fields = self._part(named, found, _below(cost, many=many))
            return DocumentPart(key, wire_name(name), many, required, fields, defaults.get(name))
        writing = _writing(definition.type, None)
        if writing is None:
            self._opaque(kind, definition, found, cost, f"{definition.type} is not read from documents")
            return None
        return DocumentLeaf(key, wire_name(name), writing, required, defaults.get(name))

    # ---- pages ---------------------------------------------------------------------------------------------------

    def page(self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost, index: int = 0) -> PageSelection:
        """Translate a page, whose arguments are the ones of that index."""
        fields: list[PageField | Constant] = []
        for key, name, found in self._selected(kind, details, cost):
            if name == "__typename":
                fields.append(Constant(key, kind.name))
                continue
            definition = kind.fields[name]
            part = _PARTS[python_name(definition)]
            named = get_named_type(definition.type)
            match part:
                case PagePart.NODES:
                    fields.append(PageField(key, part, self.rows(named, found, view, _paged(cost, index))))
                case PagePart.TOTAL_COUNT:
                    fields.append(PageField(key, part))
                case _ if isinstance(named, GraphQLObjectType):
                    below = _paged(cost, index) if part is PagePart.EDGES else cost
                    fields.append(PageField(key, part, None, self._edge(named, found, view, below)))
        return PageSelection(view, tuple(fields))

    def _edge(
        self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost
    ) -> tuple[EdgeField | Constant, ...]:
        fields: list[EdgeField | Constant] = []
        for key, name, found in self._selected(kind, details, cost):
            if name == "__typename":
                fields.append(Constant(key, kind.name))
                continue
            definition = kind.fields[name]
            named = get_named_type(definition.type)
            rows = None if is_leaf_type(named) else self.rows(named, found, view, cost)
            fields.append(EdgeField(key, python_name(definition), rows))
        return tuple(fields)

    # ---- any selection -------------------------------------------------------------------------------------------

    def _selected(self, kind: GraphQLObjectType, details: Details, cost: Cost) -> list[tuple[str, str, Details]]:
        grouped, deferred, _ = self._executor.collect_subfields(kind, details)
        if deferred:
            self._made.opaque.append(Opaque(kind.name, "@defer delivers it in parts"))
        cost.values += len(grouped)
        if len(grouped) > COLUMNS_MAX:
            self._made.opaque.append(Opaque(kind.name, f"{len(grouped)} fields of one object"))
        for key in grouped:
            if len(key) > IDENTIFIER_BYTES_MAX:
                self._made.opaque.append(Opaque(f"{kind.name}: {key}", "the name is longer than PostgreSQL's are"))
        return [(key, found[0].node.name.value, found) for key, found in grouped.items()]

    def _opaque(
        self, kind: GraphQLObjectType, definition: GraphQLField, found: Details, cost: Cost, reason: str
    ) -> None:
        """Note that a field is not compiled."""
        self._made.opaque.append(Opaque(f"{kind.name}.{found[0].node.name.value}", reason))
        self._reckon(definition, found, cost)

    def _reckon(self, definition: GraphQLField, found: Details, cost: Cost) -> None:
        """Count what is selected of a field that is executed in Python."""
        named = get_named_type(definition.type)
        if not isinstance(named, GraphQLObjectType):
            return
        inner = Cost()
        cost.nested.append((_OPAQUE_LIST_SIZE if is_list_type(_nullable(definition.type)) else 1, None, inner))
        for _, name, below in self._selected(named, found, inner):
            if name != "__typename":
                self._reckon(named.fields[name], below, inner)


def python_name(definition: GraphQLField) -> str:
    """Return the name under which a field is declared."""
    return str(definition.extensions[GraphQLCoreConverter.DEFINITION_BACKREF].python_name)


def view_of(kind: GraphQLNamedType) -> View | None:
    """Return how the rows of a type are read, if it names a row class."""
    row = getattr(_origin(kind), "row", None)
    return None if row is None else VIEWS.get(row)


def is_read(definition: GraphQLField) -> bool:
    """Say whether a root field is a read: a page, rows of one kind, anything with an id, or the feed's cursor."""
    named = get_named_type(definition.type)
    if isinstance(named, GraphQLObjectType) and _is_connection(named):
        return True
    return view_of(named) is not None or named.name in {"Node", "Cursor"}


def _origin(kind: GraphQLNamedType) -> Any:  # noqa: ANN401 - the class that Strawberry was given
    definition = kind.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return getattr(definition, "origin", None)


def _is_connection(kind: GraphQLObjectType) -> bool:
    return issubclass(_origin(kind), Connection)


def _is_plain(definition: GraphQLField) -> bool:
    return bool(definition.extensions[GraphQLCoreConverter.DEFINITION_BACKREF].is_basic_field)


def _is_constant(details: FieldDetails) -> bool:
    node: FieldNode = details.node
    waiting: list[Any] = [argument.value for argument in node.arguments or ()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, VariableNode):
            return False
        waiting += [each.value for each in getattr(value, "fields", None) or ()]
        waiting += getattr(value, "values", None) or ()
    return True


def _nullable(kind: GraphQLOutputType) -> GraphQLOutputType:
    return kind.of_type if is_non_null_type(kind) else kind


def _writing(kind: GraphQLOutputType, column: TypeEngine[Any] | None) -> Writing | None:
    """Say how a column's value is written as that scalar; None when it is not what the scalar takes."""
    inner = _nullable(kind)
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


def _defaults(document: type[msgspec.Struct] | None) -> dict[str, Any]:
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


def _below(cost: Cost, *, many: bool) -> Cost:
    inner = Cost()
    cost.nested.append((_OPAQUE_LIST_SIZE if many else 1, None, inner))
    return inner


def _paged(cost: Cost, index: int) -> Cost:
    inner = Cost()
    cost.nested.append((1, index, inner))
    return inner
