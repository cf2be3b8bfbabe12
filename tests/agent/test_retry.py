import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.failures import Refused, Unreachable
from agent.retry import SECONDS_MAX, backoff_seconds, persist
from domain.errors import Code


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_between_nothing_and_its_bound(failures: int, fraction: float) -> None:
    assert 0 <= backoff_seconds(failures, fraction) <= SECONDS_MAX


def test_backoff_grows_until_its_bound() -> None:
    assert [backoff_seconds(failures, 0.5) for failures in (1, 2, 3, 50)] == [0.5, 1.0, 2.0, SECONDS_MAX / 2]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


async def test_what_fails_for_now_is_repeated_until_it_succeeds() -> None:
    clock = Clock()
    outcomes: list[Exception | str] = [Unreachable("away"), Refused("a fault", None), "done"]

    async def call() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    got = await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, fraction=lambda: 0.5)
    assert (got, clock.now) == ("done", 1.5)


async def test_patience_ends() -> None:
    clock = Clock()

    async def call() -> None:
        raise Unreachable("away")

    with pytest.raises(Unreachable):
        await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, fraction=lambda: 0.5)
    assert 40 < clock.now <= 60


async def test_a_refusal_is_not_repeated() -> None:
    clock = Clock()

    async def call() -> None:
        raise Refused("no", Code.FORBIDDEN)

    with pytest.raises(Refused):
        await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, fraction=lambda: 0.5)
    assert clock.now == 0
