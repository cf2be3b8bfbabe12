"""Cursors: opaque, and each kind refused where the other belongs."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cursor import FeedCursor, decode_feed, decode_page, encode_feed, encode_page
from domain.errors import CursorExpired, InvalidInput
from domain.feed import Passed, VisibleTransactions, pass_event, read_snapshot, refuse_unreachable

KEYS = st.lists(st.text().filter(lambda text: "\0" not in text), min_size=1, max_size=3).map(tuple)


@given(KEYS)
def test_a_page_cursor_reads_back(key: tuple[str, ...]) -> None:
    assert decode_page(encode_page("nodes:id", key), "nodes:id", len(key)) == key


@given(st.integers(0, 2**62), st.none() | st.text(), st.integers(0, 10**6))
def test_a_feed_cursor_reads_back(position: int, snapshot: str | None, waiting: int) -> None:
    cursor = FeedCursor(position, snapshot, waiting)
    assert decode_feed(encode_feed(cursor)) == cursor


@given(st.text())
def test_any_other_text_is_refused_and_nothing_else_is_raised(text: str) -> None:
    for decode in (decode_feed, lambda given: decode_page(given, "nodes:id", 1)):
        with pytest.raises(InvalidInput):
            decode(text)


def test_a_forged_cursor_is_refused() -> None:
    for forged in (["p", "nodes:id", [1]], ["p", "nodes:id", [None]], ["p", "nodes:id", ["a\0"]]):
        with pytest.raises(InvalidInput):
            decode_page(base64.urlsafe_b64encode(json.dumps(forged).encode()).decode(), "nodes:id", 1)
    for position in (-1, 2**63):
        with pytest.raises(InvalidInput):
            decode_feed(encode_feed(FeedCursor(position)))


def test_a_cursor_of_another_list_order_or_kind_is_refused() -> None:
    for text in (encode_page("devices:id", ("a",)), encode_page("nodes:id", ("a", "b")), encode_feed(FeedCursor(3))):
        with pytest.raises(InvalidInput):
            decode_page(text, "nodes:id", 1)
    with pytest.raises(InvalidInput, match="feedCursor"):
        decode_feed(encode_page("nodes:id", ("a",)))


def test_a_snapshot_saw_what_was_committed_and_not_what_was_in_progress() -> None:
    visible = read_snapshot("10:20:12,15")
    assert visible == VisibleTransactions(10, 20, frozenset({12, 15}))
    assert [number for number in range(8, 22) if visible.saw(number)] == [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]
    assert read_snapshot("10:10:").saw(9)


@pytest.mark.parametrize("text", ["", "1:2", "a:b:c", "1:2:x"])
def test_a_snapshot_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_snapshot(text)


def test_events_that_the_query_saw_are_passed_over_and_then_the_cursor_is_a_position() -> None:
    visible = read_snapshot("10:20:12")
    cursor = FeedCursor(5, "10:20:12", waiting=2)
    steps: list[Passed] = []
    for position, transaction in ((6, 11), (7, 12), (8, 13), (9, 11)):
        passed = pass_event(cursor, visible, position, transaction)
        steps.append(passed)
        cursor = passed.cursor
    assert [passed.new for passed in steps] == [False, True, False, True]
    assert steps[1].cursor == FeedCursor(7, "10:20:12", waiting=1)
    assert steps[2].cursor == FeedCursor(8)
    assert cursor == FeedCursor(9)


@pytest.mark.parametrize(("position", "reachable"), [(4, False), (5, True), (9, True), (10, False)])
def test_a_cursor_is_reachable_from_the_floor_to_the_head(*, position: int, reachable: bool) -> None:
    if reachable:
        refuse_unreachable(FeedCursor(position), floor=5, head=9)
        return
    with pytest.raises(CursorExpired):
        refuse_unreachable(FeedCursor(position), floor=5, head=9)
