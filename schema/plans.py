"""Plans of reads: made once for each operation, selection and shape of arguments, and kept within bounds."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog
from graphql import (
    DirectiveNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLOutputType,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    visit,
)
from graphql.execution.executor import Executor

from db.views.json_text import NotCompilable
from db.views.plan import Plan, make_plan
from db.views.selection import Asked
from domain.errors import InvalidInput, Refusal
from resolvers.reads import One, Page
from schema.selections import Details, Opaque, Translation, translate

COST_MAX: Final = 1_000_000
"""Values that one read may bring: rows times fields, as the arguments ask for them."""
_TRANSLATIONS_MAX: Final = 1024
_PLANS_MAX: Final = 2048
_log = structlog.get_logger("reads")
Value = TypeVar("Value")


class Recent(OrderedDict[Hashable, Value]):
    """The entries used last, up to a number."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def found_or(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return an entry, made if it is not there."""
        found = self.get(key)
        if found is not None:
            self.move_to_end(key)
            return found
        found = self[key] = make()
        if len(self) > self._most:
            self.popitem(last=False)
        return found


@dataclass(slots=True, eq=False)
class Kept:
    """A translation with what was made of it. It holds the nodes by whose identity it is found."""

    nodes: tuple[Any, ...]
    translation: Translation
    constants: dict[int, Asked] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a read is executed: by a plan with its values, or, without one, field by field."""

    plan: Plan | None
    values: tuple[Any, ...] = ()
    opaque: Opaque | None = None


class ReadPlans:
    """The plans of a process."""

    def __init__(self) -> None:
        self._kept: Recent[Kept] = Recent(_TRANSLATIONS_MAX)
        self._plans: Recent[Plan] = Recent(_PLANS_MAX)
        self._steering: Recent[tuple[OperationDefinitionNode, tuple[str, ...]]] = Recent(_TRANSLATIONS_MAX)

    def prepare(self, executor: Executor[Any], kind: GraphQLOutputType, details: Details, read: One | Page) -> Prepared:
        """Find or make the plan of a read; raises InvalidInput when it may cost too much."""
        return self.prepare_kept(executor, self.keep(executor, kind, details, read), read)

    def prepare_kept(self, executor: Executor[Any], kept: Kept, read: One | Page) -> Prepared:
        """Do the same for a read whose translation is at hand."""
        made = kept.translation
        asked = _asked(executor, kept, read)
        cost = made.cost.of([each or Asked(first=0) for each in asked])
        if cost > COST_MAX:
            raise InvalidInput(
                f"this may bring {cost:,} values; at most {COST_MAX:,} are read at once: ask for fewer rows (`first`) "
                "or fewer fields"
            )
        known = [each for each in asked if each is not None]
        if made.opaque or made.selection is None or len(known) != len(asked):
            return Prepared(None, opaque=made.opaque[0] if made.opaque else None)
        selection = made.selection
        try:
            shapes = tuple(each.shape.key for each in known)
            plan = self._plans.found_or((kept, shapes), lambda: make_plan(selection, known))
        except NotCompilable as problem:
            made.opaque.append(Opaque(read.view.name, str(problem)))
            return Prepared(None, opaque=made.opaque[0])
        return Prepared(plan, tuple(value for each in known for value in each.values()))

    def keep(self, executor: Executor[Any], kind: GraphQLOutputType, details: Details, read: One | Page) -> Kept:
        """Find or make the translation of what is selected of a read."""
        operation = executor.operation
        nodes = tuple(each.node for each in details)
        coerced = executor.variable_values.coerced
        steering = tuple(coerced.get(name) for name in self._steers(executor))
        key = (id(operation), tuple(id(node) for node in nodes), read.view.name, steering)
        return self._kept.found_or(key, lambda: Kept((operation, *nodes), _translated(executor, kind, details, read)))

    def _steers(self, executor: Executor[Any]) -> tuple[str, ...]:
        operation = executor.operation
        found = self._steering.found_or(
            id(operation), lambda: (operation, steering_variables(operation, executor.fragment_definitions))
        )
        return found[1]


def steering_variables(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> tuple[str, ...]:
    """Return the variables that `@skip` and `@include` look at anywhere in an operation."""
    finder = _SteeringVariables()
    for node in (operation, *fragments.values()):
        visit(node, finder)
    return tuple(sorted(finder.names))


class _SteeringVariables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_args: object) -> None:
        """Note the variables of a directive."""
        self.names.update(
            argument.value.name.value for argument in node.arguments or () if isinstance(argument.value, VariableNode)
        )


def _translated(executor: Executor[Any], kind: GraphQLOutputType, details: Details, read: One | Page) -> Translation:
    made = translate(executor, kind, details, read.view)
    for opaque in made.opaque:
        _log.info(
            "a read is executed field by field",
            read=details[0].node.name.value,
            operation=executor.operation.name.value if executor.operation.name else None,
            field=opaque.place,
            reason=opaque.reason,
        )
    return made


def _asked(executor: Executor[Any], kept: Kept, read: One | Page) -> list[Asked | None]:
    """Return the arguments of the read and of all that is nested in it; None for those that are refused.

    A refusal belongs to its field, once for each row: the ordinary execution places it.
    """
    found: list[Asked | None] = [read.asked]
    for index, argued in enumerate(kept.translation.argued):
        constant = kept.constants.get(index)
        if constant is None:
            try:
                constant = argued.asked(executor)
            except (Refusal, GraphQLError):
                found.append(None)
                continue
            if argued.constant:
                kept.constants[index] = constant
        found.append(constant)
    return found
