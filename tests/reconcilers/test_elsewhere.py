"""Waking the reconcilers of other processes, and no more often than need be."""

import asyncio
from collections import Counter

import pytest

from db.database import Database
from db.hints import Hints
from reconcilers import elsewhere as module
from reconcilers.elsewhere import elsewhere
from reconcilers.loop import run
from tests.support.waiting import until
from web.server import background


class CountedHints(Hints):
    """Hints that count what they would tell."""

    def __init__(self) -> None:
        super().__init__("memory://")
        self.told: Counter[str] = Counter()

    def wake(self, name: str) -> None:
        """Count it."""
        self.told[name] += 1


@pytest.fixture
def hints() -> CountedHints:
    return CountedHints()


async def test_each_wake_of_a_process_is_passed_on_by_its_name(
    database: Database, hints: CountedHints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 0)
    async with background(*(run(loop) for loop in elsewhere(database, hints))):
        await until(lambda: len(hints.told) == 3)  # once as it begins: whatever came before
        database.heard_again.set()
        await until(lambda: hints.told["liveness"] == 2)
    assert hints.told == {"inventory": 1, "liveness": 2, "acceptance": 1}


async def test_however_often_there_is_something_to_do_others_are_woken_once_in_a_while(
    database: Database, hints: CountedHints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 3600)
    async with background(*(run(loop) for loop in elsewhere(database, hints))):
        await until(lambda: hints.told["inventory"] == 1)
        for _ in range(100):
            database.inventory_pending.set()
            await asyncio.sleep(0)
        assert hints.told["inventory"] == 1
        assert database.inventory_pending.is_set()  # and not forgotten
