"""What a subscriber is given at once: as much as there is, so that who is behind is not served event by event."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.cursor import FeedCursor
from resolvers.context import Context
from resolvers.places import Place
from resolvers.results import Shown


class Told(Protocol):
    """What has a result of its own, which all who select the same of it share."""

    @property
    def key(self) -> Hashable:
        """What two subscribers' results have to agree in."""

    @property
    def place(self) -> FeedCursor | None:
        """Where a subscriber stands behind it; None while only a new beginning is whole."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is told next, in order, and the subscription's context, of which results are made with one of their own."""

    told: Sequence[Told]
    context: Context
    shown: Shown
    standing: Place
