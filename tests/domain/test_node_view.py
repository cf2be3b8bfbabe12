"""What is told of a view, against what a fresh look at everything shows."""

from hypothesis import given
from hypothesis import strategies as st

from domain.ids import NodeId
from domain.node_view import NodeTold, ViewChange, caught_up, looked_again

NODES = st.frozensets(st.sampled_from([NodeId(each) for each in "abcdef"]))


class _Members:
    """Can only be asked about one node: no look goes through a fleet."""

    def __init__(self, members: frozenset[NodeId]) -> None:
        self._members = members

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._members


@given(before=NODES, touched=NODES, fitting=NODES)
def test_what_is_told_makes_the_members_of_before_those_that_fit_now(
    before: frozenset[NodeId], touched: frozenset[NodeId], fitting: frozenset[NodeId]
) -> None:
    kept = set(before)
    for each in looked_again(_Members(before), touched, fitting & touched):
        match each.change:
            case ViewChange.ENTERED:
                assert each.node_id not in kept
                kept.add(each.node_id)
            case ViewChange.CHANGED:
                assert each.node_id in kept
            case _:
                kept.remove(each.node_id)
    assert kept == (before - touched) | (fitting & touched)


@given(members=NODES, touched=NODES)
def test_who_was_away_is_told_of_every_node_with_events(members: frozenset[NodeId], touched: frozenset[NodeId]) -> None:
    assert caught_up(touched, _Members(members)) == tuple(
        NodeTold(ViewChange.ENTERED if node_id in members else ViewChange.LEFT, node_id) for node_id in sorted(touched)
    )
