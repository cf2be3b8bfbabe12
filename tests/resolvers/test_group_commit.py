"""Requests that come together are written together, and answered each by itself."""

import asyncio
from collections.abc import Callable, Sequence

import asyncpg
import pytest

from domain.errors import Broken
from resolvers.group_commit import Bounds, GroupCommit
from tests.support.waiting import until

Commit = GroupCommit[str, str]
BOUNDS = Bounds(wait_seconds=0.02, entries_max=6, bytes_max=100, lanes=2)


def _commit(written: list[list[str]], refuse: Callable[[str], Exception | None] = lambda _: None) -> Commit:
    async def commit(entries: Sequence[str]) -> list[str]:
        written.append(list(entries))
        await asyncio.sleep(0)
        for entry in entries:
            error = refuse(entry)
            if error is not None:
                raise error
        return [entry.upper() for entry in entries]

    return GroupCommit(commit, lambda entry: entry[0], bytes_of=len, bounds=BOUNDS)


async def test_what_comes_together_is_written_together_and_each_gets_its_answers() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    answers = await asyncio.gather(*(group.submit(entries) for entries in (["a", "b"], ["c"], ["d"])))
    assert answers == [["A", "B"], ["C"], ["D"]]
    assert written == [["a", "b", "c", "d"]]
    assert await group.submit(["e"]) == ["E"]
    assert written[1:] == [["e"]]


async def test_a_full_group_waits_for_nobody() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    full = asyncio.create_task(group.submit(["a", "b", "c", "d", "e", "f"]))
    await asyncio.sleep(0.005)
    assert full.done()


async def test_two_of_one_key_are_written_one_after_the_other() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    answers = await asyncio.gather(*(group.submit([entry]) for entry in ("a1", "b1", "a2")))
    assert answers == [["A1"], ["B1"], ["A2"]]
    assert written == [["a1", "b1"], ["a2"]]


async def test_no_group_is_larger_than_one_request_may_be() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    await asyncio.gather(group.submit(["a", "b", "c", "d"]), group.submit(["e", "f", "g", "h"]))
    assert written == [["a", "b", "c", "d"], ["e", "f", "g", "h"]]


async def test_a_group_is_bounded_by_its_bytes_and_what_is_larger_is_written_alone() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    entries = ["a" * 60, "b" * 40, "c" * 150, "d"]
    await asyncio.gather(*(group.submit([entry]) for entry in entries))
    assert [[entry[0] for entry in each] for each in written] == [["a", "b"], ["c"], ["d"]]


async def test_the_entry_with_the_fault_fails_alone_also_in_its_own_request() -> None:
    written: list[list[str]] = []
    group = _commit(written, lambda entry: ValueError(entry) if entry == "b" else None)
    first, second = await asyncio.gather(group.submit(["a", "b"]), group.submit(["c", "d"]))
    assert (first[0], second) == ("A", ["C", "D"])
    assert isinstance(first[1], Broken)
    assert written == [["a", "b", "c", "d"], ["a", "b"], ["a"], ["b"], ["c", "d"]]


async def test_what_comes_while_all_lanes_are_busy_is_written_together_as_soon_as_one_is_free() -> None:
    written: list[list[str]] = []
    free = asyncio.Event()

    async def commit(entries: Sequence[str]) -> list[str]:
        written.append(list(entries))
        await free.wait()
        return list(entries)

    group = GroupCommit(commit, lambda entry: entry[0], bounds=Bounds(wait_seconds=0, lanes=2))
    submitted = []
    for entry in ("a1", "b", "c", "d", "a2", "e"):
        submitted.append(asyncio.create_task(group.submit([entry])))
        await until(lambda: len(written) == min(2, len(submitted)))
    await until(lambda: group.queued == 4)
    assert written == [["a1"], ["b"]]
    assert group.waited_seconds(asyncio.get_running_loop().time()) > 0
    free.set()
    await asyncio.gather(*submitted)
    assert written == [["a1"], ["b"], ["c", "d", "a2", "e"]]
    assert (group.queued, group.waited_seconds(1.0)) == (0, 0.0)


async def test_a_key_that_is_being_written_holds_up_nobody_but_its_own() -> None:
    written: list[list[str]] = []
    hold = asyncio.Event()

    async def commit(entries: Sequence[str]) -> list[str]:
        written.append(list(entries))
        if "a1" in entries:
            await hold.wait()
        return list(entries)

    group = GroupCommit(commit, lambda entry: entry[0], bounds=BOUNDS)
    first = asyncio.create_task(group.submit(["a1"]))
    await until(lambda: len(written) == 1)
    second = asyncio.create_task(group.submit(["a2", "x"]))
    assert await group.submit(["b"]) == ["b"]
    third = asyncio.create_task(group.submit(["x2"]))
    assert await group.submit(["c"]) == ["c"]
    assert [second.done(), third.done()] == [False, False]
    hold.set()
    await asyncio.gather(first, second, third)
    assert [entry for group in written for entry in group if entry[0] in "ax"] == ["a1", "a2", "x", "x2"]


async def test_a_moment_of_the_database_fails_all_and_is_not_tried_for_each() -> None:
    written: list[list[str]] = []
    group = _commit(written, lambda _: ConnectionResetError())
    answers = await asyncio.gather(group.submit(["a"]), group.submit(["b"]), return_exceptions=True)
    assert all(isinstance(each, ConnectionResetError) for each in answers)
    assert len(written) == 1


async def test_a_value_that_cannot_be_encoded_is_its_entrys_fault_and_no_moment_of_the_database() -> None:
    class UnencodableError(asyncpg.InterfaceError, ValueError):
        """As asyncpg's own, which says so of an argument."""

    group = _commit([], lambda entry: UnencodableError("$1") if entry == "b" else None)
    first, second = await asyncio.gather(group.submit(["a"]), group.submit(["b"]))
    assert first == ["A"]
    assert isinstance(second[0], Broken)


async def test_nobody_waits_longer_because_others_go_on_coming() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    first = asyncio.create_task(group.submit(["a"]))
    others: list[asyncio.Task[Sequence[str | Broken]]] = []
    while not written:
        others.append(asyncio.create_task(group.submit([f"{chr(ord('b') + len(others) % 4)}{len(others)}"])))
        await asyncio.sleep(BOUNDS.wait_seconds / 8)
    assert await first == ["A"]
    assert written[0][0] == "a"
    assert loop.time() - begun < 20 * BOUNDS.wait_seconds
    await asyncio.gather(*others)


async def test_one_key_that_is_long_written_makes_nobody_think_that_the_process_is_behind() -> None:
    written: list[list[str]] = []
    hold = asyncio.Event()

    async def commit(entries: Sequence[str]) -> list[str]:
        written.append(list(entries))
        await hold.wait()
        return list(entries)

    group = GroupCommit(commit, lambda entry: entry[0], bytes_of=len, bounds=BOUNDS)
    later = asyncio.get_running_loop().time() + 60
    submitted = [asyncio.create_task(group.submit(["a1"]))]
    await until(lambda: len(written) == 1)
    submitted.append(asyncio.create_task(group.submit(["a2"])))
    await asyncio.sleep(2 * BOUNDS.wait_seconds)
    assert (group.queued, group.queued_bytes, group.waited_seconds(later)) == (1, 2, 0.0)
    submitted.append(asyncio.create_task(group.submit(["b"])))
    await until(lambda: len(written) == 2)
    submitted.append(asyncio.create_task(group.submit(["c"])))
    await asyncio.sleep(0)
    assert group.waited_seconds(later) > 50
    hold.set()
    await asyncio.gather(*submitted)
    assert written == [["a1"], ["b"], ["a2", "c"]]


async def test_who_went_away_keeps_nobody_from_an_answer() -> None:
    written: list[list[str]] = []
    group = _commit(written)
    gone, here = asyncio.create_task(group.submit(["a"])), asyncio.create_task(group.submit(["b"]))
    await asyncio.sleep(0)
    gone.cancel()
    assert await here == ["B"]
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert written == [["a", "b"]]
