"""How much of a pool may be out for remediation at once, and when a pool is left alone (rule 10)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

BREAKER_SHARE: Final = Fraction(1, 10)
BREAKER_WINDOW: Final = timedelta(minutes=10)
"""More nodes than this share that turn unhealthy within this time have a cause that no reboot of theirs ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDisruption:
    """A pool, or a tenant's nodes without one, for which no breaker is kept: nothing joins them.

    `share` of its `size` may be out at once, `out` are; `turned` turned unhealthy within the breaker's time.
    """

    is_pool: bool
    size: int
    share: float
    out: int
    turned: int
    paused_since: datetime | None = None

    @property
    def budget(self) -> int:
        """How many nodes may be out at once: always one, or remediation would be none in a small pool."""
        # The share as it was written: 0.29 of 100 nodes are 29.
        return max(1, int(Fraction(str(self.share)) * self.size)) if self.is_pool else 1

    @property
    def is_tripped(self) -> bool:
        """Whether so many turned unhealthy that the pool is left alone; one node alone tells of no common cause."""
        return self.is_pool and self.turned > max(Fraction(1), BREAKER_SHARE * self.size)

    @property
    def room(self) -> int:
        """How many more nodes may be taken out now."""
        return 0 if self.is_tripped else max(0, self.budget - self.out)
