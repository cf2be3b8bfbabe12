"""The schema, put together."""

from typing import Final

import strawberry
from graphql import lexicographic_sort_schema, print_schema
from strawberry.extensions import (
    AddValidationRules,
    MaxAliasesLimiter,
    MaxTokensLimiter,
    ParserCache,
    QueryDepthLimiter,
    ValidationCache,
)
from strawberry.schema.config import StrawberryConfig

from schema.event import NodeConditionChanged, NodeHardwareChanged, NodeInventoryChanged, OtherEvent
from schema.extensions import Errors, EventScopedExecution, OperationContext
from schema.mutation import Mutation
from schema.query import Query
from schema.scalars import SCALARS
from schema.subscription import Subscription

DEPTH_MAX: Final = 15
ALIASES_MAX: Final = 50
TOKENS_MAX: Final = 5000
CACHED_DOCUMENTS: Final = 512


class Graph(strawberry.Schema):
    """Errors are logged where they are translated (`schema.extensions.Errors`), once and with their request."""

    def process_errors(self, errors: object, execution_context: object = None) -> None:
        """Log nothing here."""


# Rule classes made once: made per request they would defeat the validation cache.
_RULES: Final = [
    *QueryDepthLimiter(max_depth=DEPTH_MAX).validation_rules,
    *MaxAliasesLimiter(max_alias_count=ALIASES_MAX).validation_rules,
]


def build() -> strawberry.Schema:
    """Build the executable schema."""
    return Graph(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=[NodeInventoryChanged, NodeHardwareChanged, NodeConditionChanged, OtherEvent],
        config=StrawberryConfig(scalar_map=SCALARS),
        execution_context_class=EventScopedExecution,
        extensions=[
            Errors,
            lambda: MaxTokensLimiter(max_token_count=TOKENS_MAX),
            lambda: ParserCache(maxsize=CACHED_DOCUMENTS),
            lambda: ValidationCache(maxsize=CACHED_DOCUMENTS),
            lambda: AddValidationRules(_RULES),
            OperationContext,
        ],
    )


def sdl(schema: strawberry.Schema) -> str:
    """Print the schema, sorted, as `schema/schema.graphql` keeps it."""
    return print_schema(lexicographic_sort_schema(schema._schema)) + "\n"  # noqa: SLF001 - Strawberry has no accessor
