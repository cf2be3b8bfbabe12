"""Results that are made once for many."""

import asyncio
from collections.abc import Sequence

import pytest

from resolvers.results import PIECE_BYTES, Made, SharedResults, Shown


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


async def _one(results: SharedResults, key: str, shown: Shown, maker: _Maker) -> object:
    async def make(_: object) -> list[Made]:
        return [await maker()]

    (value,) = await results.results([key], shown, make)
    return value


async def test_what_many_ask_for_at_once_is_made_once_though_who_asked_first_leaves() -> None:
    results, make = SharedResults(), _Maker()
    tasks = [asyncio.create_task(_one(results, "k", Shown(), make)) for _ in range(100)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    make.may.set()
    assert set(await asyncio.gather(*tasks[1:])) == {1}
    assert await _one(results, "k", Shown(), make) == 1
    assert make.made == 1


async def test_who_was_shown_a_later_state_is_not_taken_back() -> None:
    results, make, shown = SharedResults(), _Maker(), Shown()
    make.may.set()
    await _one(results, "first", Shown(), make)
    await _one(results, "second", shown, make)
    assert await _one(results, "first", shown, make) == 3
    assert await _one(results, "first", Shown(), make) == 3


async def test_what_is_kept_has_a_bound() -> None:
    results, make = SharedResults(bytes_max=3 * 710 - 1), _Maker(size=10)  # two, with what keeping them takes
    make.may.set()
    for key in ("a", "b", "c", "c"):
        await _one(results, key, Shown(), make)
    assert make.made == 3
    await _one(results, "a", Shown(), make)
    assert make.made == 4


async def test_what_must_not_be_kept_is_made_for_each_who_comes_later() -> None:
    results, make = SharedResults(), _Maker(size=0)
    make.may.set()
    assert [await _one(results, "k", Shown(), make) for _ in range(2)] == [1, 2]


class _Log:
    """Makes results that say in which turn they were made, and waits where it is told to."""

    def __init__(self) -> None:
        self.turn = 0
        self.gates: dict[str, asyncio.Event] = {}

    async def ask(self, results: SharedResults, keys: str, shown: Shown) -> list[str]:
        """Ask for the result of each letter."""

        async def make(places: Sequence[int]) -> list[Made]:
            self.turn += 1
            made = [Made(f"{keys[place]}{self.turn}", 1) for place in places]
            for place in places:
                if keys[place] in self.gates:
                    await self.gates[keys[place]].wait()
            return made

        return await results.results(keys, shown, make)


async def test_several_are_made_together_and_once_for_all_who_ask_for_them_or_for_the_end_of_them() -> None:
    results, log = SharedResults(), _Log()
    log.gates["a"] = asyncio.Event()
    asking = [asyncio.create_task(log.ask(results, keys, Shown())) for keys in ("abcd", "abcd", "cd", "cde")]
    await asyncio.sleep(0)
    log.gates["a"].set()
    assert await asyncio.gather(*asking) == [
        ["a1", "b1", "c1", "d1"],
        ["a1", "b1", "c1", "d1"],
        ["c1", "d1"],
        ["c1", "d1", "e2"],
    ]
    assert await log.ask(results, "abcde", Shown()) == ["a1", "b1", "c1", "d1", "e2"]


async def test_who_asks_in_another_order_is_shown_nothing_older_than_before() -> None:
    results, log, shown = SharedResults(), _Log(), Shown()
    assert await log.ask(results, "ab", Shown()) == ["a1", "b1"]
    assert await log.ask(results, "c", Shown()) == ["c2"]
    assert await log.ask(results, "ba", shown) == ["b1", "a1"]
    assert await log.ask(results, "bcb", shown) == ["b1", "c2", "b3"]
    assert await log.ask(results, "c", shown) == ["c4"]


async def test_a_result_that_began_before_another_ended_is_not_shown_after_it() -> None:
    results, log, shown = SharedResults(), _Log(), Shown()
    log.gates["b"] = asyncio.Event()
    early = asyncio.create_task(log.ask(results, "b", Shown()))
    await asyncio.sleep(0)
    assert await log.ask(results, "a", shown) == ["a2"]
    later = asyncio.create_task(log.ask(results, "b", shown))
    await asyncio.sleep(0)
    log.gates["b"].set()
    assert (await early, await later) == (["b1"], ["b3"])
    assert await log.ask(results, "b", Shown()) == ["b3"]


async def test_no_more_is_given_at_once_than_a_piece_or_one_result() -> None:
    results, sizes = SharedResults(), [PIECE_BYTES // 2, PIECE_BYTES // 2, 1, 2 * PIECE_BYTES, 1]
    await results.results(range(5), Shown(), lambda places: _of_sizes(places, sizes))
    given: list[list[int]] = []
    shown, left = Shown(), range(5)
    while left:
        given.append(await results.results(left, shown, lambda _: _of_sizes([], sizes)))
        left = left[len(given[-1]) :]
    assert given == [[0, 1], [2, 3], [4]]


async def _of_sizes(places: Sequence[int], sizes: Sequence[int]) -> list[Made]:
    return [Made(place, sizes[place]) for place in places]


async def test_who_waits_for_what_was_not_made_in_the_end_has_it_made() -> None:
    results, made = SharedResults(), []

    async def ask(keys: str) -> list[str]:
        async def make_one(places: Sequence[int]) -> list[Made]:
            made.append(keys[places[0]])
            await asyncio.sleep(0)
            return [Made(keys[places[0]], 1)]

        return await results.results(keys, Shown(), make_one)

    first = asyncio.create_task(ask("abc"))
    await asyncio.sleep(0)
    assert list(await asyncio.gather(ask("c"), first)) == [["c"], ["a", "b", "c"]]
    assert sorted(made) == ["a", "b", "c"]


async def test_what_is_old_is_not_kept_for_whoever_comes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resolvers.results.SECONDS_MAX", 0.05)
    results, make = SharedResults(), _Maker()
    make.may.set()
    for key in "abc":
        await _one(results, key, Shown(), make)
    await asyncio.sleep(0.06)
    await _one(results, "d", Shown(), make)
    assert list(results._kept) == ["d"]
