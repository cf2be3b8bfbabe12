"""Requests that come together are written together, and answered each by itself."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from resolvers.group_commit import GroupCommit

Commit = GroupCommit[str, str]


def _commit(written: list[list[str]], refuse: Callable[[str], Exception | None] = lambda _: None) -> Commit:
    async def commit(entries: Sequence[str]) -> list[str]:
        written.append(list(entries))
        await asyncio.sleep(0)
        for entry in entries:
            error = refuse(entry)
            if error is not None:
                raise error
        return [entry.upper() for entry in entries]

    return GroupCommit(commit, lambda entry: entry[0], wait_seconds=0.02, entries_max=6)


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


async def test_the_request_with_the_fault_fails_alone() -> None:
    written: list[list[str]] = []
    group = _commit(written, lambda entry: ValueError(entry) if entry == "b" else None)
    answers = await asyncio.gather(*(group.submit([entry]) for entry in ("a", "b", "c")), return_exceptions=True)
    assert [answers[0], answers[2]] == [["A"], ["C"]]
    assert isinstance(answers[1], ValueError)
    assert written == [["a", "b", "c"], ["a"], ["b"], ["c"]]


async def test_a_moment_of_the_database_fails_all_and_is_not_tried_for_each() -> None:
    written: list[list[str]] = []
    group = _commit(written, lambda _: ConnectionResetError())
    answers = await asyncio.gather(group.submit(["a"]), group.submit(["b"]), return_exceptions=True)
    assert all(isinstance(each, ConnectionResetError) for each in answers)
    assert len(written) == 1


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
