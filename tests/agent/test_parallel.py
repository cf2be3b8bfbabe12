"""Calls beside each other."""

import asyncio

import pytest

from agent.parallel import in_parallel


@pytest.mark.parametrize("turns", range(4))
async def test_a_cancellation_is_not_lost_when_a_call_fails_at_the_same_moment(turns: int) -> None:
    begun = asyncio.Event()

    async def call(_: int) -> None:
        begun.set()
        await asyncio.sleep(0)
        raise ConnectionResetError("lost")

    calling = asyncio.create_task(in_parallel([1, 2], call))
    await begun.wait()
    for _ in range(turns):
        await asyncio.sleep(0)
    was_over = calling.done()
    calling.cancel()
    with pytest.raises(ConnectionResetError if was_over else asyncio.CancelledError):
        await calling
