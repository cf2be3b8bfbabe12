"""What surrounds every operation: its context, and how refusals and bugs become errors."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import structlog
from graphql import GraphQLError, OperationType
from strawberry.extensions import SchemaExtension

from db.database import TRANSIENT
from domain.errors import Code, Refusal
from resolvers.context import Context

_log = structlog.get_logger("graphql")
_MASKED: Final = "an error of the server; its log has the cause under this requestId"


class OperationContext(SchemaExtension):
    """Gives every query and mutation a context of its own; a subscription's events bring theirs."""

    async def on_execute(self) -> AsyncIterator[None]:
        """Open the operation's reader and close it after the last field."""
        operation = self.execution_context
        if operation.operation_type.value == OperationType.SUBSCRIPTION.value:
            yield
            return
        snapshot = operation.operation_type.value == OperationType.QUERY.value
        shared: Context = operation.context
        own = operation.context = shared.operation(snapshot=snapshot)
        try:
            yield
        finally:
            operation.context = shared
            await own.end()


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
            result.errors = [self._translated(error) for error in errors]

    def _translated(self, error: GraphQLError) -> GraphQLError:
        context: Context | None = self.execution_context.context
        request_id = context.request_id if context else None
        cause = error.original_error
        while isinstance(cause, GraphQLError) and cause.original_error is not None:
            cause = cause.original_error
        match cause:
            case Refusal(code=code, message=message):
                extensions: dict[str, Any] = {"code": code.value, "requestId": request_id}
            case _ if isinstance(cause, TRANSIENT):
                _log.warning("the database is away", request_id=request_id, path=error.path, error=repr(cause))
                message = "the database is away for the moment; try again"
                extensions = {"code": Code.UNAVAILABLE.value, "requestId": request_id}
            case None | GraphQLError():  # a document or variables that GraphQL itself refuses
                message = error.message
                extensions = {"code": Code.INVALID_INPUT.value, **(error.extensions or {}), "requestId": request_id}
            case _:
                _log.error("an operation failed", request_id=request_id, path=error.path, exc_info=cause)
                message = _MASKED
                extensions = {"code": "INTERNAL", "requestId": request_id}
        return GraphQLError(
            message,
            nodes=error.nodes,
            source=error.source,
            positions=error.positions,
            path=error.path,
            extensions=extensions,
        )
