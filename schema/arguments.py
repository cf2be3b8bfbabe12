"""Arguments that many fields take."""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import strawberry

from domain.errors import InvalidInput
from schema.scalars import Cursor

First = Annotated[int | None, strawberry.argument(description="How many rows at most, up to 1,000.")]
After = Annotated[Cursor | None, strawberry.argument(description="The cursor behind which the page starts.")]
Id = Annotated[strawberry.ID, strawberry.argument(description="The object's id.")]
FeedAfter = Annotated[
    Cursor | None,
    strawberry.argument(
        description="A feed cursor (`feedCursor` of a query, `cursor` of an event): what follows it comes first, "
        "every event once. Without one the subscription starts now."
    ),
]


def listed(name: str, values: Sequence[object] | None) -> tuple[str, ...]:
    """Return a filter's list as texts; raises InvalidInput for an empty one, which would ask for nothing at all."""
    if values is None:
        return ()
    if not values:
        raise InvalidInput(f"{name}: empty; leave it out to ask for everything")
    return tuple(value.value if isinstance(value, Enum) else str(value) for value in values)
