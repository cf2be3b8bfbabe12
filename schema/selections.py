"""From what a client selects of a read to what the database is asked, once for each operation.

Fields that cannot be said in SQL are named with the reason; a read that selects one of them is executed field by
field. What a read may cost is reckoned on the same tree, whichever way it is executed.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from graphql import (
    FieldNode,
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
    Leaf,
    Nested,
    PageField,
    PagePart,
    PageSelection,
    RowSelection,
    Same,
    Selection,
    Variants,
)
from db.views.view import View
from domain.documents.document import wire_name
from resolvers.reads import Related
from schema.cost import Cost
from schema.declared import (
    defaults_of,
    is_connection,
    nullable,
    origin_of,
    python_name,
    writing_of,
)

Details = list[FieldDetails]
_PARTS: Final = {
    "edges": PagePart.EDGES,
    "nodes": PagePart.NODES,
    "page_info": PagePart.PAGE_INFO,
    "total_count": PagePart.TOTAL_COUNT,
}
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
    if isinstance(named, GraphQLObjectType) and is_connection(named):
        made.selection = translator.page(named, details, view, made.cost)
        return made
    runtime = executor.schema.type_map[view.name] if is_abstract_type(named) else named
    if isinstance(runtime, GraphQLObjectType):
        made.selection = translator.row(runtime, details, view, made.cost)
    return made


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A field that a client chose of a type, under a name."""

    key: str
    kind: GraphQLObjectType
    definition: GraphQLField
    details: Details

    @property
    def name(self) -> str:
        return python_name(self.definition)

    @property
    def named(self) -> GraphQLNamedType:
        return get_named_type(self.definition.type)

    @property
    def object(self) -> GraphQLObjectType | None:
        named = self.named
        return named if isinstance(named, GraphQLObjectType) else None

    @property
    def required(self) -> bool:
        return is_non_null_type(self.definition.type)

    @property
    def many(self) -> bool:
        return is_list_type(nullable(self.definition.type))

    @property
    def plain(self) -> bool:
        """Whether no Python resolver stands behind it."""
        return bool(self.definition.extensions[GraphQLCoreConverter.DEFINITION_BACKREF].is_basic_field)


class _Translator:
    def __init__(self, executor: Executor[Any], made: Translation) -> None:
        self._executor = executor
        self._made = made

    # ---- rows ----------------------------------------------------------------------------------------------------

    def rows(self, named: GraphQLNamedType, details: Details, view: View, cost: Cost) -> RowSelection:
        """Translate rows of one type, or of the types that an interface stands for."""
        if isinstance(named, GraphQLInterfaceType):
            # A row is of one of them; who asks for much of one type pays for it in every row.
            kinds = self._executor.schema.get_possible_types(named)
            return Variants(view, {kind.name: self.row(kind, details, view, cost) for kind in kinds})
        if isinstance(named, GraphQLObjectType):
            return self.row(named, details, view, cost)
        raise TypeError(f"{named} has no fields")

    def row(self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost) -> Selection:
        """Translate rows of one type."""
        fields: list[Field] = []
        for chosen in self._chosen(kind, details, cost):
            made = chosen if isinstance(chosen, Constant) else self._field(chosen, view, cost)
            if made is not None:
                fields.append(made)
        return Selection(view, tuple(fields))

    def _field(self, chosen: _Chosen, view: View, cost: Cost) -> Field | None:
        name, key = chosen.name, chosen.key
        if name in view.relations:
            return self._nested(chosen, view, cost)
        kind = chosen.object
        if kind is not None and name in view.same:
            return Same(key, self.row(kind, chosen.details, view, cost))
        if kind is not None and (name in view.documents or name in view.keys):
            return self._part(chosen, kind, name, cost)
        return self._leaf(chosen, view, cost)

    def _leaf(self, chosen: _Chosen, view: View, cost: Cost) -> Leaf | None:
        name = chosen.name
        if not is_leaf_type(chosen.named) or chosen.definition.args or not chosen.plain:
            self._opaque(chosen, cost, "a Python resolver computes it")
            return None
        column = view.column(name)
        if column is None and name not in view.keys and not (name == "cursor" and view.feed):
            self._opaque(chosen, cost, "its row has no such column")
            return None
        writing = writing_of(chosen.definition.type, None if column is None else column.type)
        if writing is None:
            self._opaque(chosen, cost, f"its column's type is not that of {chosen.definition.type}")
            return None
        return Leaf(chosen.key, name, writing, chosen.required)

    def _nested(self, chosen: _Chosen, view: View, cost: Cost) -> Nested:
        relation = view.relations[chosen.name]
        index = None
        if chosen.definition.args:
            # The root's arguments are the first.
            index = len(self._made.argued) + 1
            first = chosen.details[0]
            self._made.argued.append(Argued(chosen.definition, first, view, constant=_is_constant(first)))
        selection: RowSelection | PageSelection
        if relation.paged and chosen.object is not None:
            selection = self.page(chosen.object, chosen.details, relation.view, cost.below(), index or 0)
        else:
            selection = self.rows(chosen.named, chosen.details, relation.view, cost.below(relation.size))
        return Nested(chosen.key, chosen.name, selection, chosen.required, index)

    # ---- documents -----------------------------------------------------------------------------------------------

    def _part(
        self, chosen: _Chosen, kind: GraphQLObjectType, name: str, cost: Cost, default: object = None
    ) -> DocumentPart:
        inner = cost.below(_OPAQUE_LIST_SIZE if chosen.many else 1)
        defaults = defaults_of(getattr(origin_of(kind), "document", None))
        fields: list[DocumentLeaf | DocumentPart | Constant | Nested] = []
        for each in self._chosen(kind, chosen.details, inner):
            made = each if isinstance(each, Constant) else self._part_field(each, inner, defaults.get(each.name))
            if made is not None:
                fields.append(made)
        return DocumentPart(chosen.key, name, chosen.many, chosen.required, tuple(fields), default)

    def _part_field(self, chosen: _Chosen, cost: Cost, default: object) -> DocumentLeaf | DocumentPart | Nested | None:
        relation = PART_RELATIONS.get(chosen.name)
        if relation is not None:
            rows = self.rows(chosen.named, chosen.details, relation.view, cost.below(relation.size))
            return Nested(chosen.key, chosen.name, rows, chosen.required)
        if not chosen.plain:
            self._opaque(chosen, cost, "a Python resolver computes it")
            return None
        name = wire_name(chosen.name)
        if chosen.object is not None:
            return self._part(chosen, chosen.object, name, cost, default)
        writing = writing_of(chosen.definition.type, None)
        if writing is None:
            self._opaque(chosen, cost, f"{chosen.definition.type} is not read from documents")
            return None
        return DocumentLeaf(chosen.key, name, writing, chosen.required, default)

    # ---- pages ---------------------------------------------------------------------------------------------------

    def page(self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost, index: int = 0) -> PageSelection:
        """Translate a page, whose arguments are the ones of that index."""
        fields: list[PageField | Constant] = []
        for chosen in self._chosen(kind, details, cost):
            if isinstance(chosen, Constant):
                fields.append(chosen)
                continue
            part = _PARTS[chosen.name]
            match part:
                case PagePart.NODES:
                    rows = self.rows(chosen.named, chosen.details, view, cost.below(asked=index))
                    fields.append(PageField(chosen.key, part, rows))
                case PagePart.TOTAL_COUNT:
                    fields.append(PageField(chosen.key, part))
                case _ if chosen.object is not None:
                    below = cost.below(asked=index) if part is PagePart.EDGES else cost
                    edge = self._edge(chosen.object, chosen.details, view, below)
                    fields.append(PageField(chosen.key, part, None, edge))
        return PageSelection(view, tuple(fields))

    def _edge(
        self, kind: GraphQLObjectType, details: Details, view: View, cost: Cost
    ) -> tuple[EdgeField | Constant, ...]:
        fields: list[EdgeField | Constant] = []
        for chosen in self._chosen(kind, details, cost):
            if isinstance(chosen, Constant):
                fields.append(chosen)
                continue
            rows = None if is_leaf_type(chosen.named) else self.rows(chosen.named, chosen.details, view, cost)
            fields.append(EdgeField(chosen.key, chosen.name, rows))
        return tuple(fields)

    # ---- any selection -------------------------------------------------------------------------------------------

    def _chosen(self, kind: GraphQLObjectType, details: Details, cost: Cost) -> list[_Chosen | Constant]:
        grouped, deferred, _ = self._executor.collect_subfields(kind, details)
        if deferred:
            self._made.opaque.append(Opaque(kind.name, "@defer delivers it in parts"))
        cost.values += len(grouped)
        if len(grouped) > COLUMNS_MAX:
            self._made.opaque.append(Opaque(kind.name, f"{len(grouped)} fields of one object"))
        found: list[_Chosen | Constant] = []
        for key, below in grouped.items():
            if len(key) > IDENTIFIER_BYTES_MAX:
                self._made.opaque.append(Opaque(f"{kind.name}: {key}", "the name is longer than PostgreSQL's are"))
            name = below[0].node.name.value
            constant = name == "__typename"
            found.append(Constant(key, kind.name) if constant else _Chosen(key, kind, kind.fields[name], below))
        return found

    def _opaque(self, chosen: _Chosen, cost: Cost, reason: str) -> None:
        """Note that a field is not compiled."""
        name = chosen.details[0].node.name.value
        self._made.opaque.append(Opaque(f"{chosen.kind.name}.{name}", reason))
        self._reckon(chosen, cost)

    def _reckon(self, chosen: _Chosen, cost: Cost) -> None:
        """Count what is selected of a field that is executed in Python."""
        if chosen.object is None:
            return
        inner = cost.below(_OPAQUE_LIST_SIZE if chosen.many else 1)
        for each in self._chosen(chosen.object, chosen.details, inner):
            if isinstance(each, _Chosen):
                self._reckon(each, inner)


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
