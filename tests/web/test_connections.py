"""Since when a client takes nothing of what waits for it."""

import asyncio
from typing import Any

from web.connections import Outlet


class _Transport(asyncio.Transport):
    """Has so many bytes waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert (high, low) == (100, None)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.closing


def _outlet(waiting: int) -> tuple[Outlet, _Transport]:
    transport = _Transport()
    transport.waiting = waiting
    return Outlet(transport, 100), transport


def _stalled(outlet: Outlet, transport: _Transport, *looks: tuple[float, int]) -> list[float]:
    seconds: list[Any] = []
    for at, waiting in looks:
        transport.waiting = waiting
        seconds.append(outlet.stalled_seconds(at))
    return seconds


def test_a_client_that_takes_nothing_has_stalled_since_that_was_seen() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _stalled(outlet, transport, (10, 150), (12, 150), (15, 150)) == [0, 2, 5]


def test_a_client_that_takes_little_has_not_stalled() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _stalled(outlet, transport, (10, 150), (12, 149), (15, 149), (16, 120)) == [0, 0, 3, 0]


def test_a_ping_that_is_added_to_what_waits_is_no_progress() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _stalled(outlet, transport, (10, 150), (12, 156), (15, 156)) == [0, 2, 5]


def test_less_than_the_bound_need_not_be_taken_until_the_connection_is_closed() -> None:
    outlet, transport = _outlet(50)
    assert _stalled(outlet, transport, (10, 50), (12, 50)) == [0, 0]
    transport.closing = True
    assert _stalled(outlet, transport, (13, 50), (15, 50)) == [0, 2]


def test_a_client_that_was_released_and_is_held_again_has_new_time() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _stalled(outlet, transport, (10, 150), (12, 150)) == [0, 2]
    outlet.release(13)
    outlet.hold()
    assert _stalled(outlet, transport, (14, 150), (15, 150)) == [0, 1]
