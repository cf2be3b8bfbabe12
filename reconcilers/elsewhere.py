"""Work for reconcilers of other processes: a process without its own tells them what it would have woken."""

import asyncio
from typing import Final

from db.database import Database
from db.hints import Hints
from reconcilers.loop import Activation, Reconciler

REST_SECONDS: Final = 0.02
"""What comes within it is told once: however much there is, others are woken 50 times a second at most."""


def elsewhere(database: Database, hints: Hints) -> list[Reconciler]:
    """Make the loops that pass on this process's wakes, each to the reconcilers of its name."""
    return [_passing_on(name, hints, wake) for name, wake in database.wakes.items()]


def _passing_on(name: str, hints: Hints, wake: asyncio.Event) -> Reconciler:
    async def activate() -> Activation:
        hints.wake(name)
        await asyncio.sleep(REST_SECONDS)
        return Activation(1, more=False)

    return Reconciler(f"{name} elsewhere", activate, None, wake)
