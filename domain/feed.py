"""Which events a cursor has already seen."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from domain.cursor import FeedCursor
from domain.errors import CursorExpired, InvalidInput

_SNAPSHOT: Final = re.compile(
    r"(?P<first>[0-9]{1,18}):(?P<end>[0-9]{1,18}):(?P<in_progress>([0-9]{1,18}(,[0-9]{1,18})*)?)"
)


@dataclass(frozen=True, slots=True)
class VisibleTransactions:
    """What a PostgreSQL snapshot saw: transactions below `first`, and those below `end` not in `in_progress`."""

    first: int
    end: int
    in_progress: frozenset[int]

    def saw(self, transaction: int) -> bool:
        """Say whether the snapshot saw what this transaction wrote. Source: `pg_visible_in_snapshot`."""
        return transaction < self.first or (transaction < self.end and transaction not in self.in_progress)


def read_snapshot(text: str) -> VisibleTransactions:
    """Read `xmin:xmax:xip,xip`; raises InvalidInput when it is not one."""
    found = _SNAPSHOT.fullmatch(text)
    if found is None:
        raise InvalidInput("after: not a cursor of this server")
    first, end = int(found["first"]), int(found["end"])
    numbers = [int(part) for part in found["in_progress"].split(",") if part]
    # What PostgreSQL asks of a pg_snapshot.
    ordered = all(before < after for before, after in pairwise(numbers))
    if not 0 < first <= end or not ordered or not all(first <= number < end for number in numbers):
        raise InvalidInput("after: not a cursor of this server")
    return VisibleTransactions(first, end, frozenset(numbers))


@dataclass(frozen=True, slots=True)
class Passed:
    """What an event does to a cursor: where it stands now, and whether the event is new to its holder."""

    cursor: FeedCursor
    new: bool


def pass_event(cursor: FeedCursor, visible: VisibleTransactions | None, position: int, transaction: int) -> Passed:
    """Move the cursor over the next event of the log."""
    if visible is None or not cursor.waiting:
        return Passed(FeedCursor(position), new=True)
    if not visible.saw(transaction):
        return Passed(replace(cursor, position=position), new=True)
    waiting = cursor.waiting - 1
    return Passed(replace(cursor, position=position, waiting=waiting) if waiting else FeedCursor(position), new=False)


def refuse_unreachable(cursor: FeedCursor, *, floor: int, head: int) -> None:
    """Raise CursorExpired unless the log still holds everything after the cursor.

    `floor` is the last position dropped by retention, `head` the newest one given.
    """
    if cursor.position < floor:
        raise CursorExpired(
            f"after: the log holds events from position {floor + 1} on, this cursor is at {cursor.position}; "
            "query the present state and subscribe from its feedCursor"
        )
    if cursor.position > head:
        raise CursorExpired(
            f"after: this cursor is at {cursor.position} and the newest event at {head}: the log was replaced; "
            "query the present state and subscribe from its feedCursor"
        )
