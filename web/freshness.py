"""What a client asks of the state that its queries read, by headers or in its connection_init."""

from collections.abc import Mapping
from typing import Final

from domain.cursor import FeedCursor, decode_feed
from domain.errors import InvalidInput
from domain.feed import read_snapshot
from domain.freshness import ANY, Consistency, Freshness

CONSISTENCY: Final = "fleetgraph-consistency"
AFTER: Final = "fleetgraph-after"
_SHOWN_MAX: Final = 20


def asked_freshness(given: Mapping[str, object]) -> Freshness:
    """Read what is asked under the names of the headers; raises InvalidInput. The texts fit into a close reason."""
    consistency, after = given.get(CONSISTENCY), given.get(AFTER)
    if consistency is None and after is None:
        return ANY
    return Freshness(_consistency(consistency), _after(after))


def _consistency(given: object) -> Consistency:
    match given:
        case None:
            return Consistency.EVENTUAL
        case "eventual" | "strong":
            return Consistency(given)
        case _:
            raise InvalidInput(f"{CONSISTENCY}: {repr(given)[:_SHOWN_MAX]} is neither `eventual` nor `strong`")


def _after(given: object) -> FeedCursor | None:
    match given:
        case None:
            return None
        case str():
            cursor = decode_feed(given, AFTER)
            if cursor.snapshot is not None:
                read_snapshot(cursor.snapshot, AFTER)
            return cursor
        case _:
            raise InvalidInput(f"{AFTER}: a cursor is a string")
