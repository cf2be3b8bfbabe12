"""Relay connections over keyset pages."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from db.connections import Row
from db.paging import PAGE_MAX, Order
from db.views.selection import Asked
from db.views.view import Where
from domain import cursor
from domain.errors import InvalidInput

_FIRST_MIN: Final = 0
PAGE_DEFAULT: Final = 50


@dataclass(frozen=True, slots=True)
class Connection:
    """One page of a list as loaded rows, with the count of the whole for who asks."""

    rows: Sequence[Any]
    has_next: bool
    has_previous: bool
    count: Callable[[], Awaitable[int]]

    @classmethod
    def of(cls, rows: Sequence[Row], asked: Asked, count: Callable[[], Awaitable[int]]) -> "Connection":
        """Make a page of rows that were read with one more than asked."""
        first = PAGE_DEFAULT if asked.first is None else asked.first
        return cls(rows[:first], len(rows) > first, asked.after is not None, count)


def asked_page(name: str, order: Order, first: int | None, after: str | None, where: tuple[Where, ...] = ()) -> Asked:
    """Read `first` and `after` of the list of that name; raises InvalidInput naming the argument."""
    scope = f"{name}:{order.name}"
    size = page_size(first)
    key = None if after is None else cursor.decode_page(after, scope, len(order.columns))
    return Asked(where, order, size, key, cursor.page_frame(scope))


def page_size(first: int | None) -> int:
    """Return how many rows are asked for; raises InvalidInput beyond the bounds."""
    asked = PAGE_DEFAULT if first is None else first
    if not _FIRST_MIN <= asked <= PAGE_MAX:
        raise InvalidInput(f"first: {first}; from {_FIRST_MIN} to {PAGE_MAX} rows may be asked for")
    return asked
