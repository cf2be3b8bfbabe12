from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from agent.batches import in_batches
from agent.wire import SectionContent, Sections


def entry(node: int, *sizes: int) -> Sections:
    contents = [(f"s{place}", b"x" * size) for place, size in enumerate(sizes)]
    sections = tuple(SectionContent(name=name, sha256="0" * 64, content=content) for name, content in contents)
    return Sections(node_id=f"node_{node}", sections=sections)


@given(st.lists(st.lists(st.integers(0, 3000), min_size=1, max_size=8), max_size=12), st.integers(1, 5))
def test_batches_carry_every_section_once_within_their_bounds(nodes: list[list[int]], entries_max: int) -> None:
    entries = [entry(place, *sizes) for place, sizes in enumerate(nodes)]
    batches = list(in_batches(entries, entries_max=entries_max, bytes_max=5000))
    carried = [(part.node_id, section) for batch in batches for part in batch for section in part.sections]
    assert carried == [(whole.node_id, section) for whole in entries for section in whole.sections]
    for batch in batches:
        assert len(batch) <= entries_max
        assert len({part.node_id for part in batch}) == len(batch)
        assert sum(len(section.content) for part in batch for section in part.sections) <= 5000


def test_a_node_larger_than_a_batch_is_cut_between_sections() -> None:
    batches = list(in_batches([entry(1, 3000, 3000), entry(2, 10)], bytes_max=5000))
    assert [[part.node_id for part in batch] for batch in batches] == [["node_1"], ["node_1", "node_2"]]
    assert len(batches) == 2


def test_entries_are_read_only_as_batches_are_taken() -> None:
    read: list[int] = []

    def entries() -> Iterator[Sections]:
        for node in range(100):
            read.append(node)
            yield entry(node, 10)

    next(in_batches(entries(), entries_max=5))
    assert len(read) == 6
