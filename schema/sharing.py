"""What two subscriptions have to agree in to be sent the same result of an event.

The arguments of a subscription's root field say which events come, not what is selected of each: followers with other
filters or other places in the feed share results too.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    Node,
    OperationDefinitionNode,
    VariableNode,
    Visitor,
    visit,
)
from graphql.execution.executor import Executor

from domain.access import Principal
from schema.plans import Recent

_OPERATIONS_MAX: Final = 1024


class Selections:
    """The operations of a process that subscribe, each with the variables that its results depend on."""

    def __init__(self) -> None:
        self._known: Recent[tuple[OperationDefinitionNode, object, tuple[str, ...]]] = Recent(_OPERATIONS_MAX)

    def key(self, executor: Executor[Any], principal: Principal | None) -> Hashable:
        """Return what is selected, and of whose view: equal for those whose results are equal."""
        operation = executor.operation
        _, mark, names = self._known.found_or(
            id(operation),
            lambda: (operation, object(), selecting_variables(operation, executor.fragment_definitions)),
        )
        coerced = executor.variable_values.coerced
        values = tuple(repr(coerced[name]) if name in coerced else None for name in names)
        return mark, values, principal and (principal.tenant_id, principal.role)


def selecting_variables(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> tuple[str, ...]:
    """Return the variables that stand anywhere but in the arguments of the operation's own fields."""
    finder = _Variables()
    for selection in operation.selection_set.selections:
        below = (
            (selection.selection_set, *(selection.directives or ()))
            if isinstance(selection, FieldNode)
            else (selection,)
        )
        finder.look_at(*below)
    finder.look_at(*(operation.directives or ()), *fragments.values())
    return tuple(sorted(finder.names))


class _Variables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def look_at(self, *nodes: Node | None) -> None:
        """Note the variables that stand in these nodes."""
        for node in nodes:
            if node is not None:
                visit(node, self)

    def enter_variable(self, node: VariableNode, *_args: object) -> None:
        """Note a variable."""
        self.names.add(node.name.value)
