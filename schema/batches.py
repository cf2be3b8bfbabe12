"""The results of what a subscriber is told at once: each is sent by itself, as if they had come one by one."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from graphql import GraphQLError

from domain.cursor import FeedCursor
from resolvers.batches import Batch, Told
from resolvers.places import Place
from schema.errors import translated

_DATA = b'{"data":%b}'


@dataclass(frozen=True, slots=True)
class Part:
    """A result, and where the subscription stands once it is sent. `data` is JSON, or None where all of it failed."""

    data: bytes | None
    place: FeedCursor | None
    errors: Sequence[GraphQLError] = ()

    def json(self) -> bytes:
        """Write it as clients get it."""
        if not self.errors:
            return _DATA % (self.data or b"null")
        errors = [error.formatted for error in self.errors]
        return orjson.dumps({"data": self.data and orjson.Fragment(self.data), "errors": errors})


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a batch, in its order; it stands where the data of one result would.

    `make` makes the first of what is left, no more than is held for a client that takes its time.
    """

    batch: Batch
    make: Callable[[Sequence[Told]], Awaitable[Sequence[Part]]]

    @property
    def standing(self) -> Place:
        """Where the subscription stands; whoever sends a part moves it."""
        return self.batch.standing

    async def pieces(self) -> AsyncGenerator[Sequence[Part], None]:
        """Yield the results, the next ones when those before them are sent."""
        left = self.batch.told
        while left:
            try:
                parts = await self.make(left)
            except Exception as error:
                said: Any = GraphQLError(str(error), original_error=error)
                yield [Part(None, None, [translated(said, self.batch.context)])]
                raise
            yield parts
            left = left[len(parts) :]
