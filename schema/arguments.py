"""Arguments that many fields take."""

from typing import Annotated

import strawberry

from schema.scalars import Cursor

First = Annotated[int, strawberry.argument(description="How many rows at most, up to 1,000.")]
After = Annotated[Cursor | None, strawberry.argument(description="The cursor behind which the page starts.")]
Id = Annotated[strawberry.ID, strawberry.argument(description="The object's id.")]
FeedAfter = Annotated[
    Cursor | None,
    strawberry.argument(
        description="A feed cursor (`feedCursor` of a query, `cursor` of an event): what follows it comes first, "
        "every event once. Without one the subscription starts now."
    ),
]
