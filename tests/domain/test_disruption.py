"""How much of a pool may be out at once, and when it is left alone."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.disruption import PoolDisruption

POOL: Final = PoolDisruption(is_pool=True, size=100, share=0.05, out=0, turned=0)


@pytest.mark.parametrize(
    ("size", "share", "budget"),
    [(100, 0.05, 5), (119, 0.05, 5), (1, 0.05, 1), (3, 0.01, 1), (100, 0.29, 29), (7, 1.0, 7), (0, 0.5, 1)],
)
def test_a_share_of_a_pool_may_be_out_and_always_one_node(size: int, share: float, budget: int) -> None:
    assert replace(POOL, size=size, share=share).budget == budget


def test_of_nodes_without_a_pool_one_is_out_at_a_time_and_no_breaker_is_kept() -> None:
    loose = replace(POOL, is_pool=False, share=0.5, turned=90)
    assert (loose.budget, loose.is_tripped, loose.room) == (1, False, 1)
    assert replace(loose, out=1).room == 0


@pytest.mark.parametrize(
    ("size", "turned", "is_tripped"),
    [(100, 10, False), (100, 11, True), (1, 1, False), (3, 1, False), (3, 2, True), (20, 2, False), (20, 3, True)],
)
def test_more_than_a_tenth_that_turn_unhealthy_at_once_pause_a_pool_but_one_alone_never(
    size: int,
    turned: int,
    is_tripped: bool,  # noqa: FBT001
) -> None:
    pool = replace(POOL, size=size, turned=turned)
    assert pool.is_tripped is is_tripped
    assert (pool.room == 0) is is_tripped


@given(
    size=st.integers(0, 5000),
    share=st.floats(0.001, 1),
    out=st.integers(0, 5000),
    turned=st.integers(0, 5000),
    is_pool=st.booleans(),
)
def test_room_never_lets_more_out_than_the_budget(
    size: int,
    share: float,
    out: int,
    turned: int,
    is_pool: bool,  # noqa: FBT001
) -> None:
    pool = PoolDisruption(is_pool=is_pool, size=size, share=share, out=out, turned=turned)
    assert pool.room == 0 or pool.out + pool.room == pool.budget
    assert pool.budget <= max(1, share * size + 1e-6)
