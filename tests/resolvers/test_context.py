"""What an operation works with."""

import asyncio
import gc
from typing import Any, cast

from resolvers.context import Context


async def test_a_load_that_fails_after_all_who_asked_were_cancelled_is_no_bug_of_the_loop() -> None:
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: said.append(what))
    begun, may = asyncio.Event(), asyncio.Event()

    async def load(_: list[int]) -> list[int]:
        begun.set()
        await may.wait()
        raise ConnectionResetError("lost")

    async def ask() -> None:
        await Context(cast("Any", None), "req_test").load("key", load, 1)

    asking = asyncio.create_task(ask())
    await begun.wait()
    asking.cancel()
    await asyncio.wait([asking])
    del asking
    may.set()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert said == []
