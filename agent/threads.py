"""Blocking calls beside the event loop, in threads that do not keep the process from ending."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Run a blocking call in a thread of its own; cancelling the wait leaves the thread behind.

    Unlike a pool's threads it is a daemon: a probe that hangs in the kernel must not stop the agent from stopping.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not future.done():
            set_outcome()

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
            raised = error
            deliver = lambda: future.set_exception(raised)  # noqa: E731
        else:
            deliver = lambda: future.set_result(result)  # noqa: E731
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, deliver)

    threading.Thread(target=work, name=f"agent {function!r}", daemon=True).start()
    return await future
