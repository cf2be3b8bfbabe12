"""What surrounds every operation: its context, and how refusals and bugs become errors."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from graphql import OperationType
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionContext

from resolvers.context import Context, Entrance
from schema.errors import translated


class OperationContext(SchemaExtension):
    """Gives every query and mutation a context of its own; a subscription's events bring theirs."""

    async def on_execute(self) -> AsyncIterator[None]:
        """Open the operation's reader and close it after the last field."""
        operation = self.execution_context
        if operation.operation_type.value == OperationType.SUBSCRIPTION.value:
            yield
            return
        is_query = operation.operation_type.value == OperationType.QUERY.value
        shared: Context = operation.context
        own = operation.context = shared.query() if is_query else shared.operation(snapshot=False)
        try:
            yield
        finally:
            operation.context = shared
            await own.end()


class Counted(SchemaExtension):
    """Counts every query and mutation; what subscriptions send is counted by the feed."""

    _streamed = False

    def on_operation(self) -> Iterator[None]:
        """Take the time of the whole operation."""
        started = time.perf_counter()
        yield
        operation = self.execution_context
        context: Context | None = operation.context
        result = operation.result
        if context is None or result is None or self._streamed:
            return
        seconds = time.perf_counter() - started
        meter = context.services.meter
        meter.operation(Entrance.GRAPH, _name(operation), seconds, failed=bool(getattr(result, "errors", None)))

    def on_stream_result(self, _result: object) -> Iterator[None]:
        """Leave out what has several results."""
        self._streamed = True
        yield


def _name(operation: ExecutionContext) -> str | None:
    return operation.operation_name if operation.graphql_document is not None else None


class Errors(SchemaExtension):
    """Gives refusals their code, and hides what went wrong inside: logged with its cause under the request's id."""

    _streamed = False

    def on_operation(self) -> Iterator[None]:
        """Translate the errors of the result."""
        yield
        if not self._streamed:
            self._translate(self.execution_context.result)

    def on_stream_result(self, result: Any) -> Iterator[None]:  # noqa: ANN401 - one of several results
        """Translate the errors of one result of a stream."""
        self._streamed = True
        self._translate(result)
        yield

    def _translate(self, result: Any) -> None:  # noqa: ANN401 - one of several results
        errors = getattr(result, "errors", None)
        if errors:
            result.errors = [translated(error, self.execution_context.context) for error in errors]
