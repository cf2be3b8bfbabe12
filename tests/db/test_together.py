"""Coroutines beside each other."""

import asyncio

import pytest

from db.together import together


async def _answer(value: int, seconds: float = 0) -> int:
    await asyncio.sleep(seconds)
    return value


async def test_results_come_in_the_order_of_the_coroutines() -> None:
    assert await together(_answer(1, 0.02), _answer(2)) == [1, 2]


async def test_the_first_failure_ends_the_others_and_is_raised_as_it_is() -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise ConnectionResetError("lost")

    async def stay() -> int:
        try:
            return await _answer(1, 10)
        finally:
            ended.append(True)

    ended: list[bool] = []
    with pytest.raises(ConnectionResetError):
        await together(stay(), fail(), stay())
    assert ended == [True, True]


async def test_who_is_cancelled_ends_all() -> None:
    waiting = asyncio.create_task(together(_answer(1, 10), _answer(2)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert all(task is asyncio.current_task() for task in asyncio.all_tasks())
