"""Running a reconciler: again at once while there is work, else after a hint or a pause; never ended by a fault."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from db.connections import TRANSIENT

BACKOFF_SECONDS_MAX: Final = 10.0
_log = structlog.get_logger("reconcilers")


@dataclass(frozen=True, slots=True)
class Activation:
    """What one look at the state came to: how much was done, and whether there is more to do now."""

    done: int
    more: bool


@dataclass(frozen=True, slots=True)
class Reconciler:
    """One loop: what it does, the hint that wakes it early, and the pause that is the guarantee.

    Without a pause it goes by its hint alone: the guarantee is another process's.
    """

    name: str
    activate: Callable[[], Awaitable[Activation]]
    pause_seconds: float | None
    hint: asyncio.Event | None = None


async def run(reconciler: Reconciler) -> None:
    """Run until cancelled."""
    backoff = 0.1
    while True:
        if reconciler.hint is not None:
            reconciler.hint.clear()
        try:
            activation = await reconciler.activate()
        except TRANSIENT as error:
            _log.warning("the database is away", reconciler=reconciler.name, error=repr(error))
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, BACKOFF_SECONDS_MAX)
            continue
        except Exception:  # noqa: BLE001 - a bug of ours must not stop the loop for all else that waits
            _log.exception("an activation failed", reconciler=reconciler.name)
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, BACKOFF_SECONDS_MAX)
            continue
        backoff = 0.1
        if not activation.more:
            await _pause(reconciler)


async def _pause(reconciler: Reconciler) -> None:
    hint = reconciler.hint or asyncio.Event()
    try:
        async with asyncio.timeout(reconciler.pause_seconds):
            await hint.wait()
    except TimeoutError:
        return
