"""So many at once, so many more wait, the rest are turned away."""

import asyncio

import pytest

from domain.admission import TurnedAway, Work
from resolvers.turns import Turns
from tests.support.waiting import until


async def test_so_many_have_a_turn_at_once_and_so_many_wait_in_the_order_of_asking() -> None:
    turns = Turns(Work.HELLO, at_once=2, waiting_max=3)
    hold, begun = asyncio.Event(), list[int]()

    async def take(number: int) -> None:
        async with turns.turn():
            begun.append(number)
            await hold.wait()

    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(take(number)))
        await asyncio.sleep(0)
    await until(lambda: begun == [0, 1])
    with pytest.raises(TurnedAway):
        turns.shed()
    with pytest.raises(TurnedAway):
        await take(5)
    tasks[3].cancel()  # whose client has left
    await asyncio.gather(tasks[3], return_exceptions=True)
    tasks.append(asyncio.create_task(take(6)))
    await asyncio.sleep(0)
    hold.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == [0, 1, 2, 4, 6]


async def test_who_fails_gives_the_turn_on() -> None:
    turns = Turns(Work.HELLO, at_once=1, waiting_max=1)
    for _ in range(3):
        with pytest.raises(ValueError, match="a bug"):
            async with turns.turn():
                raise ValueError("a bug")
    async with turns.turn():
        pass
