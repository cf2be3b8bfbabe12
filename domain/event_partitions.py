"""How large the parts of the event log are, which are forgotten as a whole."""

from datetime import timedelta
from typing import Final

PARTITION_MIN: Final = 4096
PARTITION_MAX: Final = 2_000_000
"""Events of one partition."""
GROWTH_MAX: Final = 4
"""How many times larger than the one before: a burst is not taken for the rate to come."""
PARTS: Final = 8
"""Partitions that a log at a steady rate is kept in: it holds up to one of them more than it must."""


def partition_size(size: int, open_for: timedelta | None, kept: timedelta) -> int:
    """Return how many events the next partition takes, after one of `size` events that filled up in `open_for`.

    At the rate of the last one it will be open for an eighth of the time that events are kept. `open_for` is None
    where the last one has no event.
    """
    if open_for is None:
        return PARTITION_MIN
    share = kept / PARTS / max(open_for, timedelta(microseconds=1))
    return max(PARTITION_MIN, min(PARTITION_MAX, size * GROWTH_MAX, round(size * min(share, GROWTH_MAX))))
