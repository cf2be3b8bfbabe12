"""Reading on over moments at which the database is away."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from db.connections import is_transient

T = TypeVar("T")
PAUSE_SECONDS: Final = 0.1
PAUSE_SECONDS_MAX: Final = 10.0
_log = structlog.get_logger("retries")


async def retried(read: Callable[[], Awaitable[T]], seconds_max: float = math.inf) -> T:
    """Return what is read, which is tried again after a growing pause.

    Raises what is no moment of the database, and what it was when such a moment has lasted for longer than that.
    """
    ends, pause = time.monotonic() + seconds_max, PAUSE_SECONDS
    while True:
        try:
            return await read()
        except Exception as error:
            if not is_transient(error) or time.monotonic() > ends:
                raise
            _log.warning("the database is away", error=repr(error), pause_seconds=pause)
        await asyncio.sleep(pause)
        pause = min(pause * 2, PAUSE_SECONDS_MAX)
