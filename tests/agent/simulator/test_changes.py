from collections import Counter
from itertools import islice

import pytest

from agent.simulator.changes import changes
from agent.simulator.fleet import without_repeats
from agent.simulator.material import Material
from agent.simulator.node import ChangeKind, applied, ending_of, first_state
from agent.simulator.sections import sections_of
from agent.simulator.troubles import Trouble
from domain.sections import decode, encode

PAIRS = {
    ChangeKind.GPU_LOST: ChangeKind.GPU_BACK,
    ChangeKind.DIMM_LOST: ChangeKind.DIMM_BACK,
    ChangeKind.ENUMERATION_CUT: ChangeKind.ENUMERATION_WHOLE,
}


def test_the_seed_alone_decides_what_happens() -> None:
    assert list(islice(changes(7, 50), 300)) == list(islice(changes(7, 50), 300))
    assert list(islice(changes(7, 50), 300)) != list(islice(changes(8, 50), 300))


def test_everything_happens_and_every_fault_ends_on_its_node_and_part() -> None:
    happened = [change for change, _ in islice(changes(1, 200), 3000)]
    assert {change.kind for change in happened} == set(ChangeKind)
    for begin, end in PAIRS.items():
        begun = Counter((change.node, change.slot) for change in happened if change.kind is begin)
        ended = Counter((change.node, change.slot) for change in happened if change.kind is end)
        assert not ended - begun
        assert (begun - ended).total() <= 30


def test_every_trouble_happens_and_is_put_right() -> None:
    happened = [change for change, _ in islice(changes(1, 200), 3000)]
    assert {change.trouble for change in happened} == {*Trouble, None}
    waiting: Counter[object] = Counter()
    for change in happened:
        waiting[change] -= waiting[change] > 0
        waiting[ending_of(change)] += 1
    assert sum(count for change, count in waiting.items() if change is not None) <= 30


@pytest.mark.parametrize("nodes", [1, 3, 50])
def test_every_state_is_one_that_a_node_can_report(nodes: int) -> None:
    states = {node: first_state(Material(2, node)) for node in range(nodes)}
    for change, state in islice(changes(2, nodes), 400):
        states[change.node] = applied(states[change.node], change)
        assert state == states[change.node]
        for name, section in sections_of(Material(2, change.node), state).items():
            decode(name, encode(section))


def test_a_faulty_node_is_left_alone_until_its_fault_ends() -> None:
    ends: dict[int, object] = {}
    for change, _ in islice(changes(3, 100), 2000):
        if ends.get(change.node) == change:
            del ends[change.node]
        assert change.node not in ends
        if (end := ending_of(change)) is not None:
            ends[change.node] = end


def test_changes_are_batched_so_that_a_batch_names_a_node_once() -> None:
    happened = [change for change, _ in islice(changes(1, 3), 50)]
    batches = without_repeats(happened)
    assert [item for batch in batches for item in batch] == happened
    for batch in batches:
        assert len({change.node for change in batch}) == len(batch)
