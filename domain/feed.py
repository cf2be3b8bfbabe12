"""Which events a cursor has already seen."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol

from domain.cursor import FeedCursor
from domain.errors import CursorExpired, InvalidInput
from domain.ids import TenantId

UNSEEN_MAX: Final = 200
"""Transactions that a replica's cursor names: with all of them it is still shorter than a cursor may be."""
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


def read_snapshot(text: str, place: str = "after") -> VisibleTransactions:
    """Read `xmin:xmax:xip,xip` of the cursor that stood at `place`; raises InvalidInput when it is not one."""
    found = _SNAPSHOT.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{place}: not a cursor of this server")
    first, end = int(found["first"]), int(found["end"])
    numbers = [int(part) for part in found["in_progress"].split(",") if part]
    # What PostgreSQL asks of a pg_snapshot.
    ordered = all(before < after for before, after in pairwise(numbers))
    if not 0 < first <= end or not ordered or not all(first <= number < end for number in numbers):
        raise InvalidInput(f"{place}: not a cursor of this server")
    return VisibleTransactions(first, end, frozenset(numbers))


class Told(Protocol):
    """What an event itself says."""

    tenant_id: str
    type: str
    node_id: str | None
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of a tenant's events, by what they themselves say; empty sets ask nothing."""

    tenant_id: TenantId
    types: frozenset[str] = frozenset()
    node_ids: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    """Types of conditions, of events about conditions."""

    def has(self, event: Told) -> bool:
        """Say whether an event is one of them."""
        return (
            event.tenant_id == self.tenant_id
            and (not self.types or event.type in self.types)
            and (not self.node_ids or event.node_id in self.node_ids)
            and (not self.conditions or event.payload.get("condition") in self.conditions)
        )


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


def has_seen(cursor: FeedCursor, *, head: int, finished_before: int) -> bool:
    """Say whether a replica's snapshot has all that a cursor has: its events, and the changes whose events waited.

    `head` is the newest position there; every transaction below `finished_before` is finished there.
    """
    if cursor.position > head:
        return False
    return cursor.snapshot is None or read_snapshot(cursor.snapshot).end <= finished_before


def replica_cursor(position: int, finished_before: int, waiting: Iterable[tuple[int, int]]) -> FeedCursor:
    """Make the cursor of a replica's snapshot, which sees of the unfinished transactions those that wait.

    `waiting` is in order: transactions, and how many of their events have no position yet. A transaction of which the
    snapshot sees an event was finished for it; of the others, whatever they became, it sees none. Too many of those in
    between, and the cursor claims less than was seen: some events will come although the query has their change.
    """
    end, unseen, count = finished_before, list[int](), 0
    for transaction, events in waiting:
        between = range(end, transaction)
        if len(unseen) + len(between) > UNSEEN_MAX:
            break
        unseen.extend(between)
        end = max(end, transaction + 1)
        count += events
    if not count:
        return FeedCursor(position)
    return FeedCursor(position, f"{finished_before}:{end}:{','.join(map(str, unseen))}", count)
