"""How fresh a query wants the state that it reads."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.cursor import FeedCursor


class Consistency(StrEnum):
    """Which states will do."""

    EVENTUAL = "eventual"
    """One that was true a moment ago."""
    STRONG = "strong"
    """One that has everything that was committed before."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """What a client asks for; with `after` only a state that has seen everything up to that cursor will do."""

    consistency: Consistency = Consistency.EVENTUAL
    after: FeedCursor | None = None


ANY: Final = Freshness()
