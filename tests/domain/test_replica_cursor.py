"""What a replica's snapshot has seen, and the cursor that says so."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cursor import CURSOR_LENGTH_MAX, FeedCursor, decode_feed, encode_feed
from domain.feed import UNSEEN_MAX, has_seen, pass_event, read_snapshot, replica_cursor

FIRST = 700
WAITING = st.dictionaries(st.integers(FIRST - 5, FIRST + 60), st.integers(1, 3))


@given(WAITING, st.sets(st.integers(FIRST, FIRST + 70)), st.randoms(use_true_random=False))
def test_behind_a_replicas_cursor_comes_what_its_snapshot_had_not_and_nothing_else(
    waiting: dict[int, int], later: set[int], random: Random
) -> None:
    """Whatever order the relay finds, of transactions that waited there and of those that committed afterwards."""
    unseen = later - set(waiting)
    finished_before = min([FIRST, *unseen])
    collapsed = {number: count for number, count in waiting.items() if number >= finished_before}
    if early := sum(count for number, count in waiting.items() if number < finished_before):
        collapsed[finished_before - 1] = early
    cursor = replica_cursor(7, finished_before, sorted(collapsed.items()))
    events = [number for number, count in waiting.items() for _ in range(count)] + sorted(unseen)
    random.shuffle(events)
    visible = read_snapshot(cursor.snapshot) if cursor.snapshot else None
    told = []
    for position, transaction in enumerate(events, 8):
        passed = pass_event(cursor, visible, position, transaction)
        cursor = passed.cursor
        if passed.new:
            told.append(transaction)
    assert told == [number for number in events if number in unseen]
    assert cursor == FeedCursor(7 + len(events))


@given(st.lists(st.integers(10**9, 10**9 + 10**6), unique=True, max_size=500))
def test_a_replicas_cursor_is_never_too_long_and_never_claims_what_was_not_seen(numbers: list[int]) -> None:
    cursor = replica_cursor(10**9, 10**9, [(number, 1) for number in sorted(numbers)])
    assert len(encode_feed(cursor)) <= CURSOR_LENGTH_MAX
    assert decode_feed(encode_feed(cursor)) == cursor
    if cursor.snapshot is not None:
        visible = read_snapshot(cursor.snapshot)
        assert len(visible.in_progress) <= UNSEEN_MAX
        claimed = [number for number in range(10**9, visible.end) if visible.saw(number)]
        assert set(claimed) <= set(numbers)
        assert len(claimed) == cursor.waiting


@pytest.mark.parametrize(
    ("cursor", "seen"),
    [
        (FeedCursor(5), True),
        (FeedCursor(6), False),
        (FeedCursor(5, "10:20:12", 1), True),
        (FeedCursor(5, "10:21:12", 1), False),
        (FeedCursor(6, "10:20:12", 1), False),
    ],
)
def test_a_snapshot_has_what_a_cursor_has_when_its_position_and_its_transactions_are_there(
    *, cursor: FeedCursor, seen: bool
) -> None:
    assert has_seen(cursor, head=5, finished_before=20) is seen


def test_the_snapshot_of_a_replicas_cursor_is_one_for_postgresql() -> None:
    cursor = replica_cursor(1, 10, [(9, 2), (11, 1), (14, 3)])
    assert cursor == FeedCursor(1, "10:15:10,12,13", 6)
