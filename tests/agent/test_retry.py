import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.failures import Refused, Unreachable
from agent.loop import Timing
from agent.retry import SECONDS_MAX, SPREAD_SECONDS, TOLD_SECONDS_MAX, Backoff, persist
from agent.status import BEAT_SECONDS
from domain.errors import Code

AGENTS = 10_000
AWAY = Unreachable("away")
BUSY = Refused("too much", Code.RATE_LIMITED, 5.0)


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1))
def test_waits_stay_between_nothing_and_their_bound(fractions: list[float]) -> None:
    source = iter(fractions)
    backoff = Backoff(lambda: next(source))
    assert all(0 <= backoff.seconds(AWAY) <= SECONDS_MAX for _ in fractions)


def test_waits_grow_until_their_bound_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(lambda: 0.5)
    assert [backoff.seconds(AWAY) for _ in range(4)] == [5.0, 7.5, 10.0, 10.0]
    backoff.succeeded()
    assert backoff.seconds(AWAY) == 5.0


@given(st.floats(0, 1, exclude_max=True), st.floats(0.1, 60))
def test_nobody_comes_sooner_than_told(fraction: float, told: float) -> None:
    waits = Backoff(lambda: fraction).seconds(Refused("too much", Code.RATE_LIMITED, told))
    assert told <= waits <= told + max(told, SPREAD_SECONDS)


@pytest.mark.parametrize("told", [1e9, float("inf")])
def test_nobody_is_kept_away_for_ever(told: float) -> None:
    waits = Backoff(lambda: 0.5).seconds(Refused("too much", Code.RATE_LIMITED, told))
    assert waits == 1.5 * TOLD_SECONDS_MAX


def _attempts(random_: random.Random, outage: float) -> Iterator[float]:
    """Yield when an agent tries again that lost its server at 0; the last attempt is heard."""
    backoff, at = Backoff(random_.random), 0.0
    while at <= outage:
        at += backoff.seconds(AWAY)
        yield at


def _busiest(attempts: Iterator[float]) -> int:
    """Return the most in any second that begins with a tenth of one."""
    tenths = Counter(int(at * 10) for at in attempts)
    return max(sum(tenths[first + more] for more in range(10)) for first in range(max(tenths) + 1))


@pytest.mark.parametrize("outage", [0.5, 5.0, 30.0, 300.0])
def test_a_fleet_that_lost_its_server_at_one_moment_does_not_come_back_in_one(outage: float) -> None:
    source = random.Random(7)  # noqa: S311 - waits are no secret
    fleet = [list(_attempts(source, outage)) for _ in range(AGENTS)]
    heard = [attempts[-1] for attempts in fleet]
    at_rest = AGENTS / SPREAD_SECONDS
    assert _busiest(at for attempts in fleet for at in attempts) < 2.5 * at_rest
    assert _busiest(iter(heard)) < 1.8 * at_rest
    assert max(heard) - min(heard) > 0.9 * SPREAD_SECONDS
    assert max(heard) < outage + SECONDS_MAX


def test_all_that_a_fleets_agents_ask_for_by_themselves_comes_back_bit_by_bit_too() -> None:
    source = random.Random(7)  # noqa: S311 - waits are no secret
    # A heartbeat, a status report, a look for commands and a stream of each agent, each with waits of its own. After
    # five seconds the first waits end together with the second ones.
    attempts = [at for _ in range(4 * AGENTS) for at in _attempts(source, 5.0)]
    at_rest = AGENTS / SPREAD_SECONDS + 2 * AGENTS / BEAT_SECONDS
    assert _busiest(at for at in attempts if at > 5.0) < 4.1 * at_rest


@pytest.mark.parametrize(
    "wait",
    [
        lambda source: Backoff(source.random).seconds(BUSY),
        lambda source: Timing(fraction=source.random).first_contact(),
    ],
)
def test_a_fleet_that_was_told_to_wait_or_starts_at_one_moment_spreads(wait: Callable[[random.Random], float]) -> None:
    source = random.Random(7)  # noqa: S311 - waits are no secret
    waits = [wait(source) for _ in range(AGENTS)]
    assert _busiest(iter(waits)) < 1.2 * AGENTS / SPREAD_SECONDS


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

    got = await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, backoff=Backoff(lambda: 0.5))
    assert (got, clock.now) == ("done", 12.5)


async def test_patience_ends() -> None:
    clock = Clock()

    async def call() -> None:
        raise Unreachable("away")

    with pytest.raises(Unreachable):
        await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, backoff=Backoff(lambda: 0.5))
    assert 50 < clock.now <= 60


async def test_a_refusal_is_not_repeated() -> None:
    clock = Clock()

    async def call() -> None:
        raise Refused("no", Code.FORBIDDEN)

    with pytest.raises(Refused):
        await persist(call, seconds_max=60, clock=lambda: clock.now, sleep=clock.sleep, backoff=Backoff(lambda: 0.5))
    assert clock.now == 0
