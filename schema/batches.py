"""The results of what a subscriber is told at once: each is sent by itself, as if they had come one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from graphql import GraphQLError

from domain.cursor import FeedCursor
from resolvers.places import Place

_DATA = b'{"data":%b}'


@dataclass(slots=True)
class Part:
    """A result, and where the subscription stands once it is sent. `data` is JSON, or None where all of it failed."""

    data: bytes | None
    place: FeedCursor | None
    errors: list[GraphQLError] | None = None

    def json(self) -> bytes:
        """Write it as clients get it."""
        if not self.errors:
            return _DATA % (self.data or b"null")
        return orjson.dumps({"data": self.data and orjson.Fragment(self.data), "errors": formatted(self.errors)})


@dataclass(frozen=True, slots=True)
class Results:
    """Results in their order; it stands where the data of one result would."""

    parts: Sequence[Part]
    standing: Place


def formatted(errors: Sequence[GraphQLError]) -> list[Any]:
    """Return errors as clients get them."""
    return [error.formatted for error in errors]
