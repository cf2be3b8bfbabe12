"""Trying again: bounded, decorrelated jitter, so that a fleet that lost its server at one moment returns bit by bit.

Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. What differs is the first wait: it is drawn from
as wide a range as heartbeats have between them, because what fails at one moment for a whole fleet would otherwise be
tried again by all of it within the first second.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from agent.failures import AgentFailure, Refused

T = TypeVar("T")

SPREAD_SECONDS: Final = 10.0
"""Over how long a fleet that starts or fails at one moment spreads: the time between heartbeats."""
SECONDS_MAX: Final = 20.0
"""Half a session's lease: a node that was away shorter than its lease never reads disconnected."""
TOLD_SECONDS_MAX: Final = 300.0
"""The longest wait that a server may ask for: an agent that was told nonsense comes back too."""
_GROWTH: Final = 3

Fraction = Callable[[], float]
"""A source of numbers from 0 up to 1."""


@dataclass(frozen=True, slots=True)
class Spread:
    """From which ranges waits are drawn: the first up to `first_seconds`, later ones up to `seconds_max`."""

    first_seconds: float = SPREAD_SECONDS
    seconds_max: float = SECONDS_MAX


FLEET: Final = Spread()
"""For what a whole fleet does at once."""
ALONE: Final = Spread(first_seconds=1.0)
"""For a client that speaks for a whole fleet by itself."""


class Backoff:
    """The waits of one caller between its failures in a row."""

    def __init__(self, fraction: Fraction, spread: Spread = FLEET) -> None:
        self._fraction = fraction
        self._spread = spread
        self._before = 0.0

    def succeeded(self) -> None:
        """Begin anew with the next failure."""
        self._before = 0.0

    def seconds(self, failure: AgentFailure | None = None) -> float:
        """Return how long to wait after a failure; no shorter than the server said, where it did, up to a bound."""
        spread = self._spread
        told = failure.retry_after_seconds if isinstance(failure, Refused) else None
        if told is not None:
            # Many are told the same: what is added spreads them as a lost server would.
            told = min(told, TOLD_SECONDS_MAX)
            return told + self._fraction() * max(told, spread.first_seconds)
        longest = min(spread.seconds_max, max(spread.first_seconds, _GROWTH * self._before))
        self._before = self._fraction() * longest
        return self._before


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    seconds_max: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    backoff: Backoff,
) -> T:
    """Repeat a call that failed for now, until it succeeds or `seconds_max` seconds are over; raises its last failure.

    The call has to be one that may be repeated, as every report is.
    """
    until = clock() + seconds_max
    while True:
        try:
            return await call()
        except AgentFailure as failure:
            pause = backoff.seconds(failure)
            if not failure.transient or clock() + pause > until:
                raise
        await sleep(pause)
