"""What operators keep work off nodes by."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from domain.operator_axes import (
    Maintenance,
    OperatorAxes,
    axis_events,
    cordon,
    drain,
    empty,
    end_maintenance,
    maintain,
    uncordon,
)

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
T1: Final = T0 + timedelta(hours=1)
FREE: Final = OperatorAxes()
STEPS: Final = (
    cordon,
    uncordon,
    drain,
    end_maintenance,
    lambda axes: maintain(axes, "fans", "alice", T0),
    lambda axes: maintain(axes, None, "bob", T1),
    lambda axes: empty(axes, is_held=True),
    lambda axes: empty(axes, is_held=False),
)


def _told(before: OperatorAxes, after: OperatorAxes) -> list[str]:
    return [event.type for event in axis_events(before, after, by="alice")]


def test_a_drained_node_was_cordoned_and_emptied_and_uncordoning_ends_both() -> None:
    draining = drain(FREE)
    assert (draining.cordoned, draining.draining, draining.drained) == (True, True, False)
    assert _told(FREE, draining) == ["node.cordoned", "node.draining"]
    assert _told(cordon(FREE), draining) == ["node.draining"]
    assert empty(draining, is_held=True) == draining
    drained = empty(draining, is_held=False)
    assert _told(draining, drained) == ["node.drained"]
    assert _told(drained, empty(drained, is_held=True)) == []
    assert uncordon(drained) == FREE
    assert _told(drained, FREE) == ["node.uncordoned"]
    assert empty(cordon(FREE), is_held=False) == cordon(FREE), "who only cordons does not wait for its end"


def test_maintenance_keeps_its_reason_its_author_and_its_beginning() -> None:
    begun = maintain(FREE, "new fans", "alice", T0)
    assert begun.maintenance == Maintenance("new fans", "alice", T0)
    assert maintain(begun, "new fans", "bob", T1) == begun, "the same again is alice's still"
    more = maintain(begun, "new disks", "bob", T1)
    assert more.maintenance == Maintenance("new disks", "bob", T0)
    (event,) = axis_events(begun, more, by="bob", reason="new disks")
    assert (event.type, event.payload) == (
        "node.maintenance.changed",
        {
            "cordoned": False,
            "draining": False,
            "drained": False,
            "maintenance": True,
            "reason": "new disks",
            "by": "bob",
        },
    )
    assert end_maintenance(more) == FREE


@given(st.lists(st.sampled_from(STEPS)))
def test_what_is_told_is_what_changed_and_each_step_again_changes_nothing(steps: list[object]) -> None:
    axes = FREE
    for step in steps:
        after = step(axes)  # type: ignore[operator]
        assert step(after) == after  # type: ignore[operator]
        assert not axis_events(after, after, by="alice")
        assert not after.drained or after.draining
        assert not after.draining or after.cordoned
        axes = after
