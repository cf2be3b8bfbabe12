"""Doing one thing for many items at once, a bounded number at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WORKERS: Final = 8


async def in_parallel(items: Iterable[Item], call: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    """Await `call` for each item with WORKERS at a time and return the results in order of the items.

    The items are taken as workers become free. The first failure ends the others and is raised as it is.
    """
    numbered = enumerate(items)
    results: dict[int, Result] = {}

    async def work() -> None:
        for place, item in numbered:
            results[place] = await call(item)

    # Neither a task group nor `gather`: a cancellation that comes as a task fails must not be lost.
    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    try:
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
    for worker in done:
        worker.result()
    return [results[place] for place in sorted(results)]


def first_of(failures: ExceptionGroup[Exception]) -> Exception:
    """Return the first failure in a group, whatever groups it is in."""
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, ExceptionGroup) else first
