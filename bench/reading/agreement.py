"""Before anything is measured: every side answers every request, and the answers are the same."""

from collections.abc import Sequence
from typing import Any, Final

from bench.reading.asked import FAR_PAGE_NUMBER, Asked, Places, walk
from bench.reading.mapping import as_ours, comparable
from bench.reading.sides import Kind, Side
from bench.stand.errors import CannotMeasure

_SHOWN_CHARACTERS: Final = 200


def check_agreement(sides: Sequence[Side], asked: Asked) -> None:
    """Raise CannotMeasure when a side answers otherwise than the first: the peer after its mapping, others exactly."""
    first = sides[0]
    expected = first.answer(asked)
    for side in sides[1:]:
        found: Any = side.answer(asked)
        wanted: Any = expected
        if side.kind is Kind.POSTGRAPHILE:
            wanted, found = comparable(expected), as_ours(found)
        if found != wanted:
            raise CannotMeasure(f"{asked.name}: {first.kind} and {side.kind} differ at {difference(wanted, found)}")


def difference(left: object, right: object, place: str = "$") -> str:
    """Say where two JSON values differ first, and how."""
    match left, right:
        case dict(), dict() if left.keys() == right.keys():
            pairs = [(f"{place}.{key}", left[key], right[key]) for key in left]
        case list(), list() if len(left) == len(right):
            pairs = [(f"{place}[{number}]", *pair) for number, pair in enumerate(zip(left, right, strict=True))]
        case _:
            pairs = []
    for inner, one, other in pairs:
        if one != other:
            return difference(one, other, inner)
    return f"{place}: {_short(left)} and {_short(right)}"


def far_places(ours: Side, peer: Side) -> Places:
    """Walk both lists to the far page, each by its own cursors."""
    return Places(_walked(ours), _walked(peer))


def _walked(side: Side) -> str:
    after: str | None = None
    for _ in range(FAR_PAGE_NUMBER - 1):
        answer: Any = side.answer(walk(after))
        after = answer["data"]["nodes"]["pageInfo"]["endCursor"]
    if after is None:
        raise CannotMeasure(f"the list of {side.kind} has no page {FAR_PAGE_NUMBER}")
    return after


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
