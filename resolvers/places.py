"""Where the subscriptions of a socket or a stream stand in the feed, so that who is cut off knows where to go on."""

from collections.abc import Collection
from dataclasses import dataclass

from domain.cursor import FeedCursor


@dataclass(slots=True, eq=False)
class Place:
    """Where one subscription stands; whoever yields its events moves it.

    `offered` is the cursor behind the event that was yielded last, `taken` behind the last one that was sent too: a
    generator that is asked for more knows that what it yielded has been sent.
    """

    taken: FeedCursor
    offered: FeedCursor

    def offer(self, cursor: FeedCursor) -> None:
        """Move to an event that is about to be yielded; the one before it was sent."""
        self.taken, self.offered = self.offered, cursor

    def pass_over(self, cursor: FeedCursor) -> None:
        """Move behind events that were sent or are not wanted."""
        self.taken = self.offered = cursor


def resume_from(places: Collection[Place]) -> FeedCursor | None:
    """Return the cursor from which every one of these subscriptions misses nothing; None when there is none.

    One place's is exact. Several have none that is exact for all: some may see events a second time.
    """
    if len(places) == 1:
        return next(iter(places)).taken
    # What a query's snapshot has seen says nothing of the other places: the position alone is sure.
    return min((FeedCursor(place.taken.position) for place in places), key=lambda each: each.position, default=None)
