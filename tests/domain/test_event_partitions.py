"""How many events a partition of the log takes."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from domain.event_partitions import GROWTH_MAX, PARTITION_MAX, PARTITION_MIN, partition_size

KEPT = timedelta(days=8)


def test_a_partition_is_meant_to_be_open_for_an_eighth_of_the_time() -> None:
    assert partition_size(100_000, timedelta(days=1), KEPT) == 100_000
    assert partition_size(100_000, timedelta(days=2), KEPT) == 50_000
    assert partition_size(100_000, timedelta(hours=12), KEPT) == 200_000


def test_a_burst_makes_the_next_one_only_so_much_larger() -> None:
    assert partition_size(10_000, timedelta(seconds=1), KEPT) == 10_000 * GROWTH_MAX
    assert partition_size(10_000, timedelta(), KEPT) == 10_000 * GROWTH_MAX


def test_after_a_partition_without_events_the_least_is_taken() -> None:
    assert partition_size(1_000_000, None, KEPT) == PARTITION_MIN


@given(
    st.integers(1, 10**8),
    st.timedeltas(timedelta(days=-1), timedelta(days=10_000)),
    st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)),
)
def test_no_size_is_out_of_bounds_whatever_the_clocks_and_settings(
    size: int, open_for: timedelta, kept: timedelta
) -> None:
    assert PARTITION_MIN <= partition_size(size, open_for, kept) <= PARTITION_MAX
