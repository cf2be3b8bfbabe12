"""Waiting for what has no event, with a deadline."""

import asyncio
from collections.abc import Callable

SECONDS_MAX = 10.0


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds`; TimeoutError after ten seconds."""
    async with asyncio.timeout(SECONDS_MAX):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
