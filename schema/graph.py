"""The schema, put together."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import strawberry
from graphql import GraphQLError, GraphQLSchema, OperationDefinitionNode, lexicographic_sort_schema, print_schema
from strawberry.exceptions import MissingQueryError
from strawberry.extensions import AddValidationRules, MaxTokensLimiter, ParserCache, ValidationCache
from strawberry.extensions.runner import SchemaExtensionsRunner
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError
from strawberry.schema.name_converter import NameConverter
from strawberry.types import ExecutionContext, ExecutionResult
from strawberry.types.execution import PreExecutionError
from strawberry.types.graphql import OperationType

from schema.event import (
    DeviceHealthChanged,
    NodeAxisChanged,
    NodeChanged,
    NodeCommandChanged,
    NodeConditionChanged,
    NodeFaultRecorded,
    NodeHardwareChanged,
    NodeInventoryChanged,
    NodeRemediationChanged,
    OtherEvent,
    PoolRemediationChanged,
)
from schema.execution import ReadingExecution
from schema.extensions import Counted, Errors, OperationContext
from schema.limits import CACHED_CHARACTERS_MAX, TOKENS_MAX, OperationLimits
from schema.mutation import Mutation
from schema.query import Query
from schema.reading import read
from schema.scalars import SCALARS
from schema.subscription import Subscription

CACHED_DOCUMENTS: Final = 512
_NEEDS_STREAM: Final = "a subscription needs graphql-transport-ws over WebSocket, or `Accept: text/event-stream`"


class Graph(strawberry.Schema):
    """A schema whose refusals before execution are results like any other, so that `Errors` gives them their code.

    Errors are logged where they are translated (`schema.extensions.Errors`), once and with their request.
    """

    def process_errors(self, errors: object, execution_context: object = None) -> None:
        """Log nothing here."""

    async def execute(self, *args: Any, **kwargs: Any) -> ExecutionResult:  # noqa: ANN401 - Strawberry's, handed on
        """Execute what has one result; subscriptions are for `stream`."""
        allowed: Iterable[OperationType] | None = kwargs.get("allowed_operation_types")
        kwargs["allowed_operation_types"] = set(OperationType if allowed is None else allowed) - {
            OperationType.SUBSCRIPTION
        }
        return await super().execute(*args, **kwargs)

    async def _prepare_operation_async(
        self, context: ExecutionContext, extensions_runner: SchemaExtensionsRunner
    ) -> PreExecutionError | None:
        try:
            refused = await super()._prepare_operation_async(context, extensions_runner)
        except MissingQueryError:
            return _refused("there is no `query`")
        except CannotGetOperationTypeError as error:
            return _refused(_unknown(error.operation_name))
        except InvalidOperationTypeError as error:
            subscribed = error.operation_type is OperationType.SUBSCRIPTION
            return _refused(_NEEDS_STREAM if subscribed else "queries and mutations are sent by POST")
        return refused or _ambiguous(context)


def _refused(message: str) -> PreExecutionError:
    return PreExecutionError(data=None, errors=[GraphQLError(message)])


def _unknown(operation_name: str | None) -> str:
    if operation_name is None:
        return "the document has no operation"
    return f"the document has no operation named {operation_name!r}"


def _ambiguous(context: ExecutionContext) -> PreExecutionError | None:
    """Refuse several operations without a name; https://spec.graphql.org/draft/#GetOperation() asks for it."""
    document = context.graphql_document
    given = context._provided_operation_name  # noqa: SLF001 - `operation_name` falls back to the first operation's
    if document is None or given is not None:
        return None
    operations = sum(isinstance(definition, OperationDefinitionNode) for definition in document.definitions)
    if operations == 1:
        return None
    return _refused(f"the document has {operations} operations: `operationName` must say which one to run")


class RememberedNames(NameConverter):
    """Strawberry's names, which it asks for again with every argument of every field."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, str] = {}

    def apply_naming_config(self, name: str) -> str:
        """Return the name in camel case."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = super().apply_naming_config(name)
        return found


class ParsedDocuments(ParserCache):
    """Strawberry's cache, which leaves a document that does not parse to the parse that follows.

    An error raised by the cache itself would pass by everything that turns errors into results.
    """

    def on_parse(self) -> Iterator[None]:
        """Take the document from the cache, if it parses."""
        operation = self.execution_context
        if len(operation.query or "") > CACHED_CHARACTERS_MAX:
            yield
            return
        with suppress(GraphQLError):
            operation.graphql_document = self.cached_parse_document(operation.query, **operation.parse_options)
        yield


class ValidatedDocuments(ValidationCache):
    """Strawberry's cache, for documents of a length that is kept."""

    def on_validate(self) -> Iterator[None]:
        """Validate, or remember that the document was validated."""
        if len(self.execution_context.query or "") > CACHED_CHARACTERS_MAX:
            yield
        else:
            yield from super().on_validate()


def build() -> Graph:
    """Build the executable schema."""
    return Graph(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=[
            NodeInventoryChanged,
            NodeHardwareChanged,
            NodeConditionChanged,
            DeviceHealthChanged,
            NodeCommandChanged,
            NodeFaultRecorded,
            NodeAxisChanged,
            NodeChanged,
            NodeRemediationChanged,
            PoolRemediationChanged,
            OtherEvent,
        ],
        config=StrawberryConfig(scalar_map=SCALARS, default_resolver=read, name_converter=RememberedNames()),
        execution_context_class=ReadingExecution,
        extensions=[
            Counted,
            Errors,
            lambda: MaxTokensLimiter(max_token_count=TOKENS_MAX),
            lambda: ParsedDocuments(maxsize=CACHED_DOCUMENTS),
            lambda: ValidatedDocuments(maxsize=CACHED_DOCUMENTS),
            lambda: AddValidationRules([OperationLimits]),
            OperationContext,
        ],
    )


def core_schema(graph: strawberry.Schema) -> GraphQLSchema:
    """Return the schema as graphql-core has it."""
    return graph._schema  # noqa: SLF001 - Strawberry has no accessor


def sdl(schema: strawberry.Schema) -> str:
    """Print the schema, sorted, as `schema/schema.graphql` keeps it."""
    return print_schema(lexicographic_sort_schema(core_schema(schema))) + "\n"
