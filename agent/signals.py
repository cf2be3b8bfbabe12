"""Ending on SIGINT and SIGTERM, and together: the work is cancelled where it waits, and the command ends well."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_signalled(work: Coroutine[Any, Any, None]) -> bool:
    """Run the work to its end, or until a signal cancels it; say whether it came to its end."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signalled = False

    def cancel() -> None:
        nonlocal signalled
        signalled = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return not signalled


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of the works until one of them fails, whose failure is raised as it is."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
