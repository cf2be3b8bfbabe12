"""Whether a node is heard of, and how far its clock is off: by the time of receipt alone (rules 8 and 15).

A session is connected for `LEASE_SECONDS` after each sign of life, then disconnected. A silence that goes on makes the
node unreachable and in the end lost, but only while somebody listened: what nobody could hear proves nothing.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from domain.conditions import ConditionStatus, Observed
from domain.node import LEASE_SECONDS, Connectivity, Trust
from domain.standing import Changed, Standing, observe
from domain.texts import storable_time

UNREACHABLE_SECONDS: Final = 120
LOST_SECONDS: Final = 600
"""Where no setting and no pool says otherwise: a node that reboots is back before it is lost."""
SKEW_RAISED_SECONDS: Final = 10.0
SKEW_CLEARED_SECONDS: Final = 5.0
"""Between them ClockSkew stays what it is: a report may be seconds on its way, and a figure at the line never flaps."""
LISTENING_GAP_SECONDS: Final = 15.0
"""Who has not noted for so long that it listens may have been away: a silence proves nothing until a lease later."""
LIFECYCLE_TYPES: Final = ("NodeUnreachable", "ClockSkew")


@dataclass(frozen=True, slots=True)
class Patience:
    """After how many seconds of silence a node is unreachable, and lost; never before its lease has ended."""

    unreachable_seconds: float = UNREACHABLE_SECONDS
    lost_seconds: float = LOST_SECONDS

    def of_pool(self, lost_seconds: float | None) -> "Patience":
        """Return it as a pool's policy has it."""
        return self if lost_seconds is None else replace(self, lost_seconds=lost_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """What is known of a node's signs of life.

    `silent_seconds` passed since the last one, at `last_seen_at`; `away` is what its silence was said to be.
    `skew_seconds` is by how much its clock was last ahead of the server's.
    """

    silent_seconds: float
    last_seen_at: datetime
    away: Connectivity | None
    skew_seconds: float | None


@dataclass(frozen=True, slots=True)
class Lives:
    """What to write: what the node's silence is now said to be, and what that changes of its conditions."""

    away: Connectivity | None
    changed: Changed | None


def skew_seconds(sent_at: datetime | None, received_at: datetime) -> float | None:
    """Return by how many seconds a sender's clock is ahead of ours; raises InvalidInput for what is no storable time.

    The way here counts as behind, so that what is ahead is never the network's doing.
    """
    if sent_at is None:
        return None
    return round((storable_time("sentAt", sent_at) - received_at).total_seconds(), 3)


def judge(
    hearing: Hearing, standing: Standing, patience: Patience, listened_seconds: float, now: datetime
) -> Lives | None:
    """Decide what a node's silence is; None when all of it is written already.

    `listened_seconds` says for how long the servers have listened without a gap.
    """
    away = silence(hearing, patience, listened_seconds)
    said = [_unreachable(away, hearing.last_seen_at)]
    # A tenant's machine says of its clock what it likes (rule 9); whether it is heard of is seen here.
    if hearing.skew_seconds is not None and standing.trust is not Trust.TENANT_CONTROLLED:
        said += _skewed(hearing.skew_seconds)
    changed = observe(standing, said, now)
    return None if changed is None and away is hearing.away else Lives(away, changed)


def silence(hearing: Hearing, patience: Patience, listened_seconds: float) -> Connectivity | None:
    """Say whether a silence makes a node unreachable or lost; None while it is too short for either."""
    if hearing.silent_seconds < LEASE_SECONDS:
        return None
    if listened_seconds < LEASE_SECONDS:
        return hearing.away
    if hearing.silent_seconds >= patience.lost_seconds:
        return Connectivity.LOST
    return Connectivity.UNREACHABLE if hearing.silent_seconds >= patience.unreachable_seconds else None


def _unreachable(away: Connectivity | None, last_seen_at: datetime) -> Observed:
    if away is None:
        return Observed("NodeUnreachable", ConditionStatus.FALSE)
    message = f"nothing heard of it since {last_seen_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Observed("NodeUnreachable", ConditionStatus.TRUE, away.value.capitalize(), message)


def _skewed(seconds: float) -> list[Observed]:
    if abs(seconds) < SKEW_CLEARED_SECONDS:
        return [Observed("ClockSkew", ConditionStatus.FALSE)]
    if abs(seconds) < SKEW_RAISED_SECONDS:
        return []
    # No figure: it changes with every report, and each change would be written and told.
    way, reason = ("ahead of", "ClockAhead") if seconds > 0 else ("behind", "ClockBehind")
    message = f"its clock is {SKEW_RAISED_SECONDS:.0f} seconds or more {way} the server's"
    return [Observed("ClockSkew", ConditionStatus.TRUE, reason, message)]
