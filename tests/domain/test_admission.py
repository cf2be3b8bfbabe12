"""Rates and the order of what is turned away, as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.admission import BEHIND_SECONDS_MAX, Rate, TurnedAway, Why, Work, sheds, taken, too_early

RATE = Rate(per_second=5, burst=50)


@given(st.lists(st.floats(0, 3), max_size=200))
def test_no_sender_gets_more_than_its_burst_and_its_rate(pauses: list[float]) -> None:
    now = until = 0.0
    let_in = 0
    for pause in pauses:
        now += pause
        while not too_early(until, RATE, now):
            until = taken(until, RATE, now)
            let_in += 1
    assert let_in <= RATE.burst + RATE.per_second * now + 1


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_who_waits_as_long_as_told_is_let_in(until: float, now: float) -> None:
    told = too_early(until, RATE, now)
    assert too_early(until, RATE, now + told) == pytest.approx(0, abs=1e-6)


def test_a_sender_at_its_rate_is_never_turned_away() -> None:
    until = 0.0
    for number in range(1000):
        assert not too_early(until, RATE, number / RATE.per_second)
        until = taken(until, RATE, number / RATE.per_second)


def test_what_is_turned_away_first_is_in_the_order_of_the_kinds_and_heartbeats_are_last() -> None:
    limits = [BEHIND_SECONDS_MAX[work] for work in Work]
    assert limits == sorted(set(limits))
    assert list(Work)[-1] is Work.HEARTBEAT
    assert [work for work in Work if sheds(work, 7.0)] == [Work.SECTIONS, Work.HELLO]


@pytest.mark.parametrize("why", Why)
def test_what_is_turned_away_says_why_and_when_to_come_again(why: Why) -> None:
    refusal = TurnedAway(Work.STATUS, why, 0.04)
    assert refusal.retry_after_seconds == 0.1
    assert "send this status again in 0.1 s" in refusal.message
