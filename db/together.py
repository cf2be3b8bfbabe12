"""Coroutines beside each other, for loops that survive failures but not their own end, and failures nobody hears."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(*coroutines: Coroutine[Any, Any, Result]) -> list[Result]:
    """Await all and return their results; the first failure ends the others and is raised as it is.

    Neither a task group nor `gather`: when a task fails at the moment in which they are cancelled, they may tell of the
    failure only (a group before Python 3.13), and who goes on after failures would go on for ever.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task.done() and task.exception() is not None]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in failed:
        task.result()
    return [task.result() for task in tasks]


def take_note(done: asyncio.Future[Any]) -> None:
    """Take note of what went wrong, as a callback of what those who asked for it may have left."""
    if not done.cancelled():
        done.exception()
