"""Operations of which every root field is a compiled read: answered without visiting a field in Python.

What decides is the same as in any execution: the document is parsed and validated by the same rules, each root field's
own resolver authorizes and describes its read, and a failure becomes an error by the same function. Any other
operation is left to the graph.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    default_field_resolver,
    default_type_resolver,
    is_non_null_type,
)
from graphql.execution.collect_fields import FragmentDetails
from graphql.execution.collect_fields import collect_fields as collect_root_fields
from graphql.execution.get_variable_signature import GraphQLVariableSignature, get_variable_signature
from graphql.execution.values import (
    VariableValues,
    VariableValueSource,
    get_argument_values,
    input_is_nested_too_deeply,
)
from graphql.pyutils import Path, Undefined
from graphql.utilities.coerce_input_value import coerce_default_value, coerce_input_value
from strawberry.execution import optimized_is_awaitable

from db.database import AbsentValue
from resolvers.context import Context
from resolvers.reads import Single
from schema.answers import Answer, Root, Step, answer
from schema.declared import is_read
from schema.execution import PLANS, ReadingExecution
from schema.limits import CACHED_CHARACTERS_MAX, problems, read_document
from schema.plans import Recent, steering_variables

OPERATIONS_MAX: Final = 1024
_STEERED_MAX: Final = 32


class LeftToTheGraph(Exception):  # noqa: N818 - an answer: somebody else executes the operation
    """The operation is not of compiled reads only, or is wrong in a way that the graph tells."""


@dataclass(slots=True)
class Operation:
    """A valid operation, and its root fields for each way in which its directives may go."""

    node: OperationDefinitionNode
    executor: ReadingExecution
    """Copied for each request, with its variables and context: making one costs more."""
    signatures: tuple[GraphQLVariableSignature, ...]
    steering: tuple[str, ...]
    roots: Recent[tuple[Root, ...] | LeftToTheGraph] = field(default_factory=lambda: Recent(_STEERED_MAX))
    is_left: bool = False
    """One of its reads is not compiled, whatever the values."""

    @property
    def name(self) -> str | None:
        """The operation's name."""
        return self.node.name.value if self.node.name else None


class CompiledOperations:
    """Executes operations of compiled reads for a process."""

    def __init__(self, schema: GraphQLSchema) -> None:
        if schema.query_type is None:
            raise TypeError("the schema has no queries")
        self._schema = schema
        self._query: GraphQLObjectType = schema.query_type
        self._operations: Recent[Operation | LeftToTheGraph] = Recent(OPERATIONS_MAX)

    def find(self, text: str, name: str | None) -> Operation:
        """Return the operation that a request means; raises LeftToTheGraph."""
        if len(text) > CACHED_CHARACTERS_MAX:
            raise LeftToTheGraph("its text is too long to be kept")
        found = self._operations.found_or((text, name), lambda: self._read(text, name))
        if isinstance(found, LeftToTheGraph):
            raise found
        if found.is_left:
            raise LeftToTheGraph("a read is not compiled")
        return found

    async def execute(self, operation: Operation, variables: Mapping[str, Any], context: Context) -> Answer:
        """Prepare every read of an operation, and return its answer; raises LeftToTheGraph.

        The context is of this operation alone; whoever gave it ends it when the last piece has come.
        """
        executor = _copy(operation.executor)
        executor.variable_values = _coerced(operation.signatures, variables)
        executor.context_value = context
        roots = self._roots(operation, executor)
        # Every resolver is called before one of them reads: each may say what all must have seen.
        resolved = [self._resolved(executor, root) for root in roots]
        steps = [self._step(executor, *each) for each in zip(roots, resolved, strict=True)]
        if any(step.prepared is not None and step.prepared.plan is None for step in steps):
            operation.is_left = any(step.prepared is not None and step.prepared.opaque for step in steps)
            raise LeftToTheGraph("a read is not compiled")
        try:
            return await answer(context, steps)
        except AbsentValue as problem:
            raise LeftToTheGraph("a value is absent that the schema has") from problem

    def _read(self, text: str, name: str | None) -> Operation | LeftToTheGraph:
        try:
            document = read_document(text)
        except GraphQLError:
            return LeftToTheGraph("the document does not parse")
        node = _chosen(document, name)
        if node is None or node.operation is not OperationType.QUERY or problems(self._schema, document):
            return LeftToTheGraph("not one valid query")
        definitions = {
            each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)
        }
        if any(each.variable_definitions for each in definitions.values()):
            return LeftToTheGraph("its fragments have variables of their own")
        fragments = {name: FragmentDetails(each) for name, each in definitions.items()}
        signatures = [get_variable_signature(self._schema, each) for each in node.variable_definitions or ()]
        known = tuple(each for each in signatures if isinstance(each, GraphQLVariableSignature))
        if len(known) != len(signatures):
            return LeftToTheGraph("a variable's type is unknown")
        executor = ReadingExecution(
            self._schema,
            definitions,
            fragments,
            None,
            None,
            node,
            VariableValues({}, {}),
            default_field_resolver,
            default_type_resolver,
            default_field_resolver,
            is_awaitable=optimized_is_awaitable,
        )
        return Operation(node, executor, known, steering_variables(node, definitions))

    def _roots(self, operation: Operation, executor: ReadingExecution) -> tuple[Root, ...]:
        steered = tuple(executor.variable_values.coerced.get(name) for name in operation.steering)
        found = operation.roots.found_or(steered, lambda: self._collected(executor))
        if isinstance(found, LeftToTheGraph):
            raise found
        return found

    def _collected(self, executor: ReadingExecution) -> tuple[Root, ...] | LeftToTheGraph:
        query = self._query
        try:
            grouped, deferred, _ = collect_root_fields(
                self._schema, executor.fragments, executor.variable_values, query, executor.operation
            )
        except GraphQLError:
            return LeftToTheGraph("a directive is wrong")
        names = {key: details[0].node.name.value for key, details in grouped.items()}
        if deferred or not all(name in query.fields and is_read(query.fields[name]) for name in names.values()):
            return LeftToTheGraph("a root field is no compiled read")
        return tuple(
            Root(
                key,
                f"{',' if number else ''}{orjson.dumps(key).decode()}:",
                query.fields[names[key]],
                details,
                [each.node for each in details],
            )
            for number, (key, details) in enumerate(grouped.items())
        )

    def _resolved(self, executor: ReadingExecution, root: Root) -> Any:  # noqa: ANN401 - whatever the resolver returns
        """Ask the field's resolver for its read; what it raises is returned."""
        nodes = root.nodes
        try:
            given = get_argument_values(root.definition, nodes[0], executor.variable_values)
            info = executor.build_resolve_info(root.definition, nodes, self._query, Path(None, root.key, "Query"))
            return (root.definition.resolve or default_field_resolver)(None, info, **given)
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the field's error
            return error

    def _step(self, executor: ReadingExecution, root: Root, read: Any) -> Step:  # noqa: ANN401
        """Find the plan of a field's read."""
        context: Context = executor.context_value
        if isinstance(read, Exception):
            return Step(root, error=read)
        try:
            if isinstance(read, Single):
                return Step(root, read)
            kept = root.kept.get(read.view.name)
            if kept is None:
                kept = root.kept[read.view.name] = PLANS.keep(executor, root.definition.type, root.details, read)
            prepared = PLANS.prepare_kept(executor, kept, read)
        except Exception as error:  # noqa: BLE001 - whatever it is becomes the field's error
            return Step(root, error=error)
        if prepared.plan is not None:
            context.services.meter.read(root.nodes[0].name.value, compiled=True)
        return Step(root, read, prepared)


def _copy(executor: ReadingExecution) -> ReadingExecution:
    """Copy an executor, without what it remembers of fields, which depends on the variables."""
    made = ReadingExecution.__new__(ReadingExecution)
    made.__dict__.update(executor.__dict__, _relevant_sub_fields={})
    return made


def _coerced(signatures: Sequence[GraphQLVariableSignature], given: Mapping[str, Any]) -> VariableValues:
    """Coerce the variables as graphql-core's `get_variable_values` does; raises LeftToTheGraph for a wrong one.

    https://spec.graphql.org/draft/#CoerceVariableValues()
    """
    sources: dict[str, VariableValueSource] = {}
    coerced: dict[str, Any] = {}
    for signature in signatures:
        name = signature.name
        if name in given:
            value = given[name]
            sources[name] = VariableValueSource(signature, value)
            if isinstance(value, dict | list) and input_is_nested_too_deeply(value, signature.type):
                raise LeftToTheGraph("a variable is nested too deeply")
            coerced[name] = coerce_input_value(value, signature.type)
        elif signature.default is not None:
            sources[name] = VariableValueSource(signature)
            coerced[name] = coerce_default_value(signature)
        elif is_non_null_type(signature.type):
            raise LeftToTheGraph("a variable is missing")
        else:
            sources[name] = VariableValueSource(signature)
            continue
        if coerced[name] is Undefined:
            raise LeftToTheGraph("a variable is wrong")
    return VariableValues(sources, coerced)


def _chosen(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    if name is None:
        return operations[0] if len(operations) == 1 else None
    return next((each for each in operations if each.name is not None and each.name.value == name), None)
