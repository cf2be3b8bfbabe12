"""How refusals and bugs become errors, whoever executed the operation."""

from typing import Any, Final

import structlog
from graphql import GraphQLError

from db.connections import is_transient
from domain.errors import Code, RateLimited, Refusal
from resolvers.context import Context

_log = structlog.get_logger("graphql")
_MASKED: Final = "an error of the server; its log has the cause under this requestId"


def cause_of(error: GraphQLError) -> Exception | None:
    """Return what an error was made of, through all that was made of it."""
    cause = error.original_error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    return cause


def translated(error: GraphQLError, context: Context | None) -> GraphQLError:
    """Give a refusal its code, and hide what went wrong inside: it is logged with its cause under the request's id."""
    request_id = context.request_id if context else None
    cause = cause_of(error)
    match cause:
        case RateLimited(code=code, message=message, retry_after_seconds=seconds):
            extensions: dict[str, Any] = {"code": code.value, "retryAfterSeconds": seconds, "requestId": request_id}
        case Refusal(code=code, message=message):
            extensions = {"code": code.value, "requestId": request_id}
        case _ if cause is not None and is_transient(cause):
            _log.warning("the database is away", request_id=request_id, path=error.path, error=repr(cause))
            message = "the database is away for the moment; try again"
            extensions = {"code": Code.UNAVAILABLE.value, "requestId": request_id}
        case None | GraphQLError():  # a document or variables that GraphQL itself refuses
            message = error.message
            extensions = {"code": Code.INVALID_INPUT.value, **(error.extensions or {}), "requestId": request_id}
        case _:
            _log.error("an operation failed", request_id=request_id, path=error.path, exc_info=cause)
            message = _MASKED
            extensions = {"code": Code.INTERNAL.value, "requestId": request_id}
    return GraphQLError(
        message,
        nodes=error.nodes,
        source=error.source,
        positions=error.positions,
        path=error.path,
        extensions=extensions,
    )
