"""Results that are made once for many."""

import asyncio

from resolvers.results import Made, SharedResults, Shown


class _Maker:
    """Makes a new value each time, once it may."""

    def __init__(self, size: int = 1) -> None:
        self.made = 0
        self.may = asyncio.Event()
        self._size = size

    async def __call__(self) -> Made:
        self.made += 1
        value = self.made
        await self.may.wait()
        return Made(value, self._size)


async def test_what_many_ask_for_at_once_is_made_once_though_who_asked_first_leaves() -> None:
    results, make = SharedResults(), _Maker()
    tasks = [asyncio.create_task(results.result("k", Shown(), make)) for _ in range(100)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    make.may.set()
    assert set(await asyncio.gather(*tasks[1:])) == {1}
    assert await results.result("k", Shown(), make) == 1
    assert make.made == 1


async def test_who_was_shown_a_later_state_is_not_taken_back() -> None:
    results, make, shown = SharedResults(), _Maker(), Shown()
    make.may.set()
    await results.result("first", Shown(), make)
    await results.result("second", shown, make)
    assert await results.result("first", shown, make) == 3
    assert await results.result("first", Shown(), make) == 3


async def test_what_is_kept_has_a_bound() -> None:
    results, make = SharedResults(bytes_max=10), _Maker(size=4)
    make.may.set()
    for key in ("a", "b", "c", "c"):
        await results.result(key, Shown(), make)
    assert make.made == 3
    await results.result("a", Shown(), make)
    assert make.made == 4


async def test_what_must_not_be_kept_is_made_for_each_who_comes_later() -> None:
    results, make = SharedResults(), _Maker(size=0)
    make.may.set()
    assert [await results.result("k", Shown(), make) for _ in range(2)] == [1, 2]
