"""What an operation may cost before it runs: how deep, how many aliases, how many fields, fragments spread out.

Each definition is read once and each fragment's cost is reckoned once: a document whose fragments double what they
spread, level by level, takes no longer to measure than its length, which `TOKENS_MAX` limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from graphql import (
    SKIP,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValidationRule,
    VisitorAction,
    parse,
    specified_rules,
)
from graphql.validation.rules import overlapping_fields_can_be_merged
from strawberry.schema.schema import validate_document

DEPTH_MAX: Final = 15
"""Levels of fields that select fields; what introspection selects is limited by graphql-core's own rule."""
ALIASES_MAX: Final = 50
FIELDS_MAX: Final = 10_000
COUNTED_MAX: Final = 1_000_000_000
"""Where counting stops; far above every limit, so that a message tells how far off a document is."""
COMPARISON_BUDGET: Final = 50_000
"""What graphql-core may spend on comparing fields of one response name with each other, two units a pair."""

# graphql-core's own 500,000 lets one document of 15 kB hold the event loop for a second (measured); this attribute is
# its documented place to lower it.
overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = COMPARISON_BUDGET


TOKENS_MAX: Final = 5000
"""What a document may be long."""
CACHED_CHARACTERS_MAX: Final = 2**16
"""Longer texts, of long values and comments, are executed and not kept: what is kept has a bound."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a selection set with its fragments spread out; counts stop at COUNTED_MAX."""

    depth: int
    aliases: int
    fields: int


@dataclass(frozen=True, slots=True)
class _Spread:
    name: str
    level: int | None  # None: inside introspection, whose depth is not counted here


@dataclass(frozen=True, slots=True)
class _Written:
    """What stands in one definition itself."""

    cost: Cost
    spreads: tuple[_Spread, ...]


class OperationLimits(ValidationRule):
    """Refuses operations that are too deep, or have too many aliases or fields once their fragments are spread out."""

    def enter_document(self, node: DocumentNode, *_args: object) -> VisitorAction:
        """Measure every operation; no node below needs a visit."""
        for operation, cost in operation_costs(node):
            name = f"operation {operation.name.value!r}" if operation.name else "the operation"
            for kind, found, most in (
                ("levels of fields", cost.depth, DEPTH_MAX),
                ("aliases", cost.aliases, ALIASES_MAX),
                ("fields", cost.fields, FIELDS_MAX),
            ):
                if found > most:
                    counted = f"{found} or more" if found == COUNTED_MAX else str(found)
                    said = f"{name} has {counted} {kind} with its fragments spread out; at most {most} are allowed"
                    self.report_error(GraphQLError(said, operation))
        return SKIP


def read_document(text: str) -> DocumentNode:
    """Parse a document within its length; raises GraphQLError."""
    return parse(text, max_tokens=TOKENS_MAX)


def problems(schema: GraphQLSchema, document: DocumentNode) -> list[GraphQLError]:
    """Return why a document may not be executed: GraphQL's rules, Strawberry's and the limits."""
    return validate_document(schema, document, (*specified_rules, OperationLimits))


def operation_costs(document: DocumentNode) -> list[tuple[OperationDefinitionNode, Cost]]:
    """Return each operation with its cost; nothing when fragments spread each other in a circle.

    Such a document is refused by graphql-core's NoFragmentCyclesRule, one with unknown fragments by its
    KnownFragmentNamesRule: a spread of an unknown fragment costs nothing here.
    """
    written = {
        definition.name.value: _written(definition.selection_set)
        for definition in document.definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    spreads = {name: {spread.name for spread in own.spreads} for name, own in written.items()}
    try:
        order = tuple(TopologicalSorter(spreads).static_order())
    except CycleError:
        return []
    costs: dict[str, Cost] = {}
    for name in order:
        if name in written:
            costs[name] = _spread_out(written[name], costs)
    return [
        (definition, _spread_out(_written(definition.selection_set), costs))
        for definition in document.definitions
        if isinstance(definition, OperationDefinitionNode)
    ]


def _spread_out(written: _Written, costs: Mapping[str, Cost]) -> Cost:
    depth, aliases, fields = written.cost.depth, written.cost.aliases, written.cost.fields
    for spread in written.spreads:
        cost = costs.get(spread.name)
        if cost is None:
            continue
        if spread.level is not None:
            depth = max(depth, spread.level + cost.depth)
        aliases = min(COUNTED_MAX, aliases + cost.aliases)
        fields = min(COUNTED_MAX, fields + cost.fields)
    return Cost(depth, aliases, fields)


def _written(selection_set: SelectionSetNode) -> _Written:
    """Read a definition; a stack of our own, because nothing here depends on how deep Python may recurse."""
    depth = aliases = fields = 0
    spreads: list[_Spread] = []
    waiting: list[tuple[SelectionSetNode, int | None]] = [(selection_set, 0)]
    while waiting:
        selections, level = waiting.pop()
        depth = max(depth, level or 0)
        for selection in selections.selections:
            match selection:
                case FieldNode():
                    fields += 1
                    aliases += selection.alias is not None
                    if selection.selection_set:
                        waiting.append((selection.selection_set, _below(selection, level)))
                case InlineFragmentNode():
                    waiting.append((selection.selection_set, level))
                case FragmentSpreadNode():
                    spreads.append(_Spread(selection.name.value, level))
    return _Written(Cost(depth, aliases, fields), tuple(spreads))


def _below(field: FieldNode, level: int | None) -> int | None:
    return None if level is None or field.name.value.startswith("__") else level + 1
