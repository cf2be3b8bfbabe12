"""Who is let in: how often a node and a tenant may report, and what a process that falls behind turns away first.

Rates are kept by the generic cell rate algorithm (ITU-T I.371): of each sender one number, the time at which all that
it sent would have been sent at the steady rate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.errors import RateLimited

OVERLOAD_RETRY_SECONDS: Final = 5.0
"""An eighth of a session's lease, to which agents add jitter."""
RETRY_SECONDS_MIN: Final = 0.1


class Work(StrEnum):
    """Kinds of work, in the order in which a process that falls behind turns them away.

    Reads are not among them: people look at a fleet when something is wrong, and operations are bounded one by one.
    """

    SECTIONS = "sections"
    """The dearest; the node's next heartbeat is asked for them again."""
    HELLO = "hello"
    CHANGE = "change"
    """An operator's mutation: who asked is told, and asks again."""
    STATUS = "status"
    HEARTBEAT = "heartbeat"


BEHIND_SECONDS_MAX: Final[Mapping[Work, float]] = {
    Work.SECTIONS: 4.0,
    Work.HELLO: 6.0,
    Work.CHANGE: 8.0,
    Work.STATUS: 10.0,
    Work.HEARTBEAT: 15.0,
}
"""From how far behind on each is turned away: a request waits about that long, and agents give up after a minute."""
_FIRST_SECONDS: Final = min(BEHIND_SECONDS_MAX.values())


class Why(StrEnum):
    """Why something is turned away."""

    NODE = "node"
    TENANT = "tenant"
    OVERLOAD = "overload"


@dataclass(frozen=True, slots=True)
class Rate:
    """Entries a second in the long run, and how many at once after a rest; 0 a second is no limit."""

    per_second: float
    burst: float


NO_LIMIT: Final = Rate(0, 0)


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of each node and of each tenant."""

    node: Rate = NO_LIMIT
    tenant: Rate = NO_LIMIT


class TurnedAway(RateLimited):
    """An entry that is not let in, and why."""

    def __init__(self, work: Work, why: Why, retry_after_seconds: float) -> None:
        seconds = round(max(retry_after_seconds, RETRY_SECONDS_MIN), 1)
        cause = "the server is behind with its work" if why is Why.OVERLOAD else f"this {why.value} sends too much"
        super().__init__(f"{cause}: send this {work.value} again in {seconds:g} s", seconds)
        self.work = work
        self.why = why


def taken(sent_until: float, rate: Rate, now: float) -> float:
    """Return until when a sender has sent, by its rate, after one more entry."""
    return max(sent_until, now) + 1 / rate.per_second


def too_early(sent_until: float, rate: Rate, now: float) -> float:
    """Return how many seconds too early one more entry is; 0 when it is not."""
    return max(0.0, taken(sent_until, rate, now) - now - rate.burst / rate.per_second)


def sheds(work: Work, behind_seconds: float) -> bool:
    """Say whether a process that is so far behind turns this kind of work away."""
    return behind_seconds >= _FIRST_SECONDS and behind_seconds >= BEHIND_SECONDS_MAX[work]
