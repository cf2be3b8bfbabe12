"""What a silence is, and when a clock is off."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from domain.conditions import Condition, ConditionStatus
from domain.ids import NodeId, TenantId
from domain.liveness import Hearing, Lives, Patience, judge, silence
from domain.node import Connectivity, Trust
from domain.standing import Standing

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
LOST, UNREACHABLE = Connectivity.LOST, Connectivity.UNREACHABLE
LONG: Final = 1e6
FRESH: Final = Standing(
    node_id=NodeId("node_1"),
    tenant_id=TenantId("tenant_1"),
    trust=Trust.PLATFORM,
    conditions={},
    no_schedule_reasons=("foreign",),
)


def _hearing(silent: float, away: Connectivity | None = None, skew: float | None = None) -> Hearing:
    return Hearing(silent_seconds=silent, last_seen_at=T0, away=away, skew_seconds=skew)


def _after(standing: Standing, lives: Lives | None) -> Standing:
    if lives is None or lives.changed is None:
        return standing
    conditions = {**standing.conditions, **{each.type: each for each in lives.changed.conditions}}
    return replace(standing, conditions=conditions, no_schedule_reasons=lives.changed.no_schedule_reasons)


@pytest.mark.parametrize(
    ("silent", "away"),
    [(0, None), (39.9, None), (40, None), (119.9, None), (120, UNREACHABLE), (599.9, UNREACHABLE), (600, LOST)],
)
def test_a_silence_goes_from_unreachable_to_lost(silent: float, away: Connectivity | None) -> None:
    assert silence(_hearing(silent), Patience(), LONG) is away


@pytest.mark.parametrize(
    ("lost_after", "silent", "away"), [(60, 60, LOST), (1, 39, None), (1, 40, LOST), (900, 600, UNREACHABLE)]
)
def test_a_pools_policy_says_when_a_node_is_lost_but_never_within_its_lease(
    lost_after: float, silent: float, away: Connectivity | None
) -> None:
    assert silence(_hearing(silent), Patience().of_pool(lost_after), LONG) is away


@pytest.mark.parametrize("was", [None, UNREACHABLE, LOST])
def test_what_nobody_could_hear_changes_nothing_until_one_lease_has_passed(was: Connectivity | None) -> None:
    assert silence(_hearing(LONG, was), Patience(), 39.9) is was
    assert silence(_hearing(LONG, was), Patience(), 40) is LOST
    assert silence(_hearing(3, was), Patience(), 0) is None, "who is heard is there, whoever listened before"


def test_a_node_becomes_unreachable_once_lost_once_and_comes_back_once() -> None:
    unreachable = judge(_hearing(200), FRESH, Patience(), LONG, T0)
    assert unreachable is not None
    assert unreachable.changed is not None
    assert unreachable.away is UNREACHABLE
    (condition,) = unreachable.changed.conditions
    said = "nothing heard of it since 2026-01-01T00:00:00Z"
    assert condition == Condition("NodeUnreachable", ConditionStatus.TRUE, "Unreachable", said, T0, no_schedule=True)
    assert unreachable.changed.no_schedule_reasons == ("foreign", "NodeUnreachable")
    assert [event.type for event in unreachable.changed.events] == ["node.condition.changed"]
    standing = _after(FRESH, unreachable)
    assert judge(_hearing(200, UNREACHABLE), standing, Patience(), LONG, T0) is None
    lost = judge(_hearing(700, UNREACHABLE), standing, Patience(), LONG, T0 + timedelta(seconds=500))
    assert lost is not None
    assert lost.changed is not None
    assert (lost.changed.conditions[0].reason, lost.changed.conditions[0].since) == ("Lost", T0)
    standing = _after(standing, lost)
    assert judge(_hearing(9000, LOST), standing, Patience(), LONG, T0) is None
    back = judge(_hearing(1), standing, Patience(), LONG, T0 + timedelta(hours=1))
    assert back is not None
    standing = _after(standing, back)
    assert standing.no_schedule_reasons == ("foreign",)
    assert standing.conditions["NodeUnreachable"].status is ConditionStatus.FALSE
    assert judge(_hearing(1), standing, Patience(), LONG, T0) is None


def test_a_clock_is_told_to_be_off_once_and_between_the_lines_it_stays_as_it_is() -> None:
    standing = FRESH
    for skew, status, reason in (
        (9.9, None, None),
        (10.0, "true", "ClockAhead"),
        (7200.5, "true", "ClockAhead"),
        (-5.0, "true", "ClockAhead"),
        (-4000.0, "true", "ClockBehind"),
        (4.9, "false", None),
        (9.0, "false", None),
    ):
        standing = _after(standing, judge(_hearing(1, skew=skew), standing, Patience(), LONG, T0))
        found = standing.conditions.get("ClockSkew")
        assert (found and found.status.value, found and found.reason) == (status, reason), skew
        assert judge(_hearing(1, skew=skew), standing, Patience(), LONG, T0) is None
    assert standing.no_schedule_reasons == ("foreign",)


def test_a_tenants_machine_is_unreachable_too_but_its_clock_is_its_own() -> None:
    theirs = replace(FRESH, trust=Trust.TENANT_CONTROLLED)
    assert judge(_hearing(1, skew=9000.0), theirs, Patience(), LONG, T0) is None
    lives = judge(_hearing(700), theirs, Patience(), LONG, T0)
    assert lives is not None
    assert lives.away is LOST
