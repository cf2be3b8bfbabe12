"""What observations change of a node."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.condition_types import POLICIES, ConditionPolicy
from domain.conditions import Condition, ConditionStatus, Observed
from domain.daemon_conditions import DAEMON_TYPES, daemon_conditions, not_the_daemons, repeated
from domain.ids import NodeId, TenantId
from domain.node import Trust
from domain.standing import Standing, observe

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
T1: Final = T0 + timedelta(minutes=1)
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
FRESH: Final = Standing(
    node_id=NodeId("node_1"),
    tenant_id=TenantId("tenant_1"),
    trust=Trust.PLATFORM,
    conditions={},
    no_schedule_reasons=("Xid79", "foreign"),
)
REPORTS: Final = st.lists(
    st.builds(Observed, type=st.sampled_from(DAEMON_TYPES), status=st.sampled_from(ConditionStatus)),
    unique_by=lambda each: each.type,
)


def _after(standing: Standing, said: list[Observed], now: datetime, *, advisory: bool = False) -> Standing:
    changed = observe(standing, daemon_conditions(said), now, advisory=advisory)
    if changed is None:
        return standing
    conditions = {**standing.conditions, **{each.type: each for each in changed.conditions}}
    return Standing(
        node_id=standing.node_id,
        tenant_id=standing.tenant_id,
        trust=standing.trust,
        conditions=conditions,
        no_schedule_reasons=changed.no_schedule_reasons,
    )


def test_the_daemons_types_are_in_the_table_as_the_rules_have_them() -> None:
    by_policy = {
        policy: {kind for kind in DAEMON_TYPES if POLICIES[kind] is policy}
        for policy in (ConditionPolicy.NO_SCHEDULE, ConditionPolicy.ALERT)
    }
    assert by_policy[ConditionPolicy.NO_SCHEDULE] == {
        "ForeignGpuExposure",
        "PodResourcesUnavailable",
        "KubernetesReleaseStuck",
        "KubernetesReleasesUnreadable",
    }
    assert set.union(*by_policy.values()) == {*DAEMON_TYPES}


def test_what_is_not_in_the_report_any_more_is_false_from_then_on() -> None:
    held = _after(FRESH, [Observed("ForeignGpuExposure", TRUE, "DevicePlugin"), Observed("RebootRequired", TRUE)], T0)
    assert held.no_schedule_reasons == ("Xid79", "foreign", "ForeignGpuExposure")
    over = _after(held, [Observed("RebootRequired", TRUE)], T1)
    assert over.no_schedule_reasons == ("Xid79", "foreign")
    assert over.conditions["ForeignGpuExposure"] == Condition(
        "ForeignGpuExposure", FALSE, None, None, T1, no_schedule=True
    )
    assert over.conditions["RebootRequired"] == held.conditions["RebootRequired"]


def test_a_first_report_of_nothing_writes_nothing() -> None:
    assert observe(FRESH, daemon_conditions([]), T0) is None


def test_a_tenants_word_is_recorded_and_is_no_reason() -> None:
    told = _after(FRESH, [Observed("ForeignGpuExposure", TRUE)], T0, advisory=True)
    assert told.conditions["ForeignGpuExposure"] == Condition(
        "ForeignGpuExposure", TRUE, None, None, T0, no_schedule=False
    )
    assert told.no_schedule_reasons == FRESH.no_schedule_reasons
    taken_back = _after(told, [Observed("ForeignGpuExposure", TRUE)], T1)
    assert taken_back.no_schedule_reasons == (*FRESH.no_schedule_reasons, "ForeignGpuExposure")
    assert taken_back.conditions["ForeignGpuExposure"].since == T0
    assert _after(taken_back, [Observed("ForeignGpuExposure", TRUE)], T1, advisory=True).no_schedule_reasons == (
        FRESH.no_schedule_reasons
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(REPORTS, st.booleans()), min_size=1, max_size=4))
def test_conditions_are_what_the_last_report_says_and_saying_it_again_changes_nothing(
    reports: list[tuple[list[Observed], bool]],
) -> None:
    standing = FRESH
    for said, advisory in reports:
        standing = _after(standing, said, T0, advisory=advisory)
        told = {each.type: each.status for each in said}
        for kind, condition in standing.conditions.items():
            assert condition.status is told.get(kind, FALSE)
        assert standing.no_schedule_reasons[:2] == FRESH.no_schedule_reasons
        assert observe(standing, daemon_conditions(said), T1, advisory=advisory) is None
        holding = {kind for kind, each in standing.conditions.items() if each.no_schedule and each.status is TRUE}
        assert holding <= {*standing.no_schedule_reasons}


def test_types_that_are_another_sources_are_named_and_change_nothing() -> None:
    said = [Observed("Xid79", TRUE), Observed("AcceptanceFailed", FALSE), Observed("MPSDown", TRUE)]
    assert not_the_daemons(said) == ("AcceptanceFailed",)
    changed = observe(FRESH, daemon_conditions(said), T0)
    assert changed is not None
    assert [each.type for each in changed.conditions] == ["MPSDown"]
    assert changed.no_schedule_reasons == FRESH.no_schedule_reasons


def test_a_type_of_the_daemons_is_said_once_and_others_as_often_as_they_like() -> None:
    assert repeated([Observed("Xid48", TRUE), Observed("Xid48", TRUE), Observed("MPSDown", TRUE)]) is None
    assert repeated([Observed("MPSDown", TRUE), Observed("MPSDown", UNKNOWN)]) == "MPSDown"
