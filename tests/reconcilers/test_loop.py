"""The loop that every reconciler runs in."""

import asyncio

import pytest

from db.together import together
from reconcilers.loop import Activation, Reconciler, run


async def _fail(begun: asyncio.Event) -> None:
    begun.set()
    await asyncio.sleep(0)
    raise ConnectionResetError("lost")


@pytest.mark.parametrize("turns", range(6))
async def test_a_loop_that_is_cancelled_as_one_of_several_activities_fails_ends(turns: int) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def activate() -> Activation:
        if not cancelled.is_set():
            await together(_fail(begun), asyncio.sleep(10))
        return Activation(0, more=False)

    running = asyncio.create_task(run(Reconciler("test", activate, pause_seconds=0.01)))
    await begun.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    cancelled.set()
    done, _ = await asyncio.wait([running], timeout=1)
    running.cancel()
    assert done == {running}
