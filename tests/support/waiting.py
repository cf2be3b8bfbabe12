"""Waiting for what has no event, with a deadline."""

import asyncio
from collections.abc import Awaitable, Callable

SECONDS_MAX = 30.0


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds`; TimeoutError after half a minute."""
    async with asyncio.timeout(SECONDS_MAX):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def until_seen(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a question is answered with yes; TimeoutError after half a minute."""
    async with asyncio.timeout(SECONDS_MAX):
        while not await holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)
