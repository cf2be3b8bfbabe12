"""Whether a client takes something of what waits for it."""

import asyncio

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


def _looks(outlet: Outlet, transport: _Transport, *waiting: int) -> list[int]:
    looks = []
    for transport.waiting in waiting:
        looks.append(outlet.look())
    return looks


def test_looks_that_find_nothing_taken_are_counted() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _looks(outlet, transport, 150, 150, 150) == [0, 1, 2]


def test_a_client_that_takes_little_begins_anew() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _looks(outlet, transport, 150, 149, 149, 120) == [0, 0, 1, 0]


def test_a_ping_that_is_added_to_what_waits_is_no_progress() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _looks(outlet, transport, 150, 156, 156) == [0, 1, 2]


def test_less_than_the_bound_need_not_be_taken_until_the_connection_is_closed() -> None:
    outlet, transport = _outlet(50)
    assert _looks(outlet, transport, 50, 50) == [0, 0]
    transport.closing = True
    assert _looks(outlet, transport, 50, 50) == [0, 1]


def test_a_client_that_was_released_and_is_held_again_begins_anew() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _looks(outlet, transport, 150, 150) == [0, 1]
    outlet.release(13)
    outlet.hold()
    assert _looks(outlet, transport, 150, 150) == [0, 1]


def test_more_time_is_counted_from_the_start() -> None:
    outlet, transport = _outlet(150)
    outlet.hold()
    assert _looks(outlet, transport, 150, 150, 150) == [0, 1, 2]
    outlet.allow_more_time()
    assert _looks(outlet, transport, 150) == [1]
