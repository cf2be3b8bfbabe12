"""Where a client that is cut off goes on."""

from domain.cursor import FeedCursor
from resolvers.places import Place, resume_from


def _place(position: int, snapshot: str | None = None) -> Place:
    cursor = FeedCursor(position, snapshot, 1 if snapshot else 0)
    return Place(cursor)


def test_who_was_not_sent_a_whole_view_has_nothing_to_go_on_from() -> None:
    assert resume_from({Place(None)}) is None
    assert resume_from({Place(None), _place(7)}) is None


def test_one_subscription_goes_on_exactly_where_it_was() -> None:
    assert resume_from({_place(7, "10:12:11")}) == FeedCursor(7, "10:12:11", 1)


def test_several_go_on_where_the_last_of_them_was_without_what_only_one_query_has_seen() -> None:
    assert resume_from({_place(9), _place(7, "10:12:11"), _place(8)}) == FeedCursor(7)


def test_without_subscriptions_there_is_nothing_to_go_on_with() -> None:
    assert resume_from(set()) is None
