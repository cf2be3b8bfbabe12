"""Where the subscriptions of a socket or a stream stand in the feed, so that who is cut off knows where to go on."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from domain.cursor import FeedCursor


@dataclass(slots=True, eq=False)
class Place:
    """Where one subscription stands: behind the last of its results that was sent; whoever sends moves it.

    There is no such cursor as long as only a new beginning is whole. Who waits for more stands where all was looked at:
    `passed` says where that is, while it waits.
    """

    sent: FeedCursor | None
    passed: Callable[[], FeedCursor] | None = None

    @contextmanager
    def waiting(self, passed: Callable[[], FeedCursor]) -> Iterator[None]:
        """Stand where `passed` says while the block lasts."""
        self.passed = passed
        try:
            yield
        finally:
            self.passed = None

    def move(self, cursor: FeedCursor | None) -> None:
        """Move behind what was sent; what has no place leaves it where it is."""
        if cursor is not None:
            self.sent = cursor

    @property
    def cursor(self) -> FeedCursor | None:
        """Where to go on."""
        return self.passed() if self.passed is not None else self.sent


def resume_from(places: Collection[Place]) -> FeedCursor | None:
    """Return the cursor from which every one of these subscriptions misses nothing; None when there is none.

    One place's is exact. Several have none that is exact for all: some may see events a second time.
    """
    cursors = [cursor for cursor in (place.cursor for place in places) if cursor is not None]
    if len(cursors) < len(places):
        return None
    if len(cursors) == 1:
        return cursors[0]
    # What a query's snapshot has seen says nothing of the other places: the position alone is sure.
    return min((FeedCursor(cursor.position) for cursor in cursors), key=lambda each: each.position, default=None)
