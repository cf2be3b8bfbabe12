"""Trying again: bounded exponential backoff with full jitter, so that a fleet does not return all at once.

Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from agent.failures import AgentFailure

T = TypeVar("T")

FIRST_SECONDS: Final = 0.5
SECONDS_MAX: Final = 20.0
"""Half a session's lease: a node that was away shorter than its lease never reads disconnected."""
_DOUBLINGS_MAX: Final = 10

Fraction = Callable[[], float]
"""A source of numbers from 0 up to 1."""


def backoff_seconds(failures: int, fraction: float) -> float:
    """Return how long to wait after that many failures in a row (from 1)."""
    return fraction * min(SECONDS_MAX, FIRST_SECONDS * (1 << min(failures, _DOUBLINGS_MAX)))


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    seconds_max: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    fraction: Fraction,
) -> T:
    """Repeat a call that failed for now, until it succeeds or `seconds_max` seconds are over; raises its last failure.

    The call has to be one that may be repeated, as every report is.
    """
    until = clock() + seconds_max
    failures = 0
    while True:
        try:
            return await call()
        except AgentFailure as failure:
            failures += 1
            pause = backoff_seconds(failures, fraction())
            if not failure.transient or clock() + pause > until:
                raise
        await sleep(pause)
