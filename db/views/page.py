"""A page in its rows: which texts and values follow each other in its JSON."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias, assert_never

from db.views.selection import Asked
from domain import cursor

Texts: TypeAlias = Sequence[Any]
"""Rows of JSON texts, by place: what is known before the rows, what is written of each row, the row's key."""


@dataclass(frozen=True, slots=True)
class Head:
    """A value of the page that each row has alike, by its column."""

    column: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list: how a row of it is written, texts and columns in turn; a text comes first and last."""

    item: tuple[str | int, ...]

    def pieces(self, rows: Texts) -> list[str]:
        """Return the rows in pieces, with commas between them: a large page is copied once, when all is together."""
        if not rows:
            return []
        match self.item:
            case (str(before), int(column), str(behind)):
                pieces = [f"{behind},{before}"] * (2 * len(rows) + 1)
                pieces[1::2] = [row[column] for row in rows]
                pieces[0], pieces[-1] = before, behind
                return pieces
            case item:
                found: list[str] = []
                for row in rows:
                    found.append(",")
                    found.extend(each if isinstance(each, str) else row[each] for each in item)
                return found[1:]


class Told(Enum):
    """What the rows of a page tell of it."""

    HAS_NEXT_PAGE = auto()
    HAS_PREVIOUS_PAGE = auto()
    START_CURSOR = auto()
    END_CURSOR = auto()


Part: TypeAlias = str | Head | Items | Told


@dataclass(slots=True)
class Seen:
    """The rows of a page that were read, in the order in which they come."""

    asked: Asked
    first: Any = None
    last: Any = None
    count: int = 0
    has_next: bool = False

    def shown(self, rows: Texts) -> Texts:
        """Take further rows, and return those that are in the page."""
        left = (self.asked.first or 0) - self.count
        if len(rows) > left:
            self.has_next = True
            rows = rows[:left]
        if rows:
            self.count += len(rows)
            self.last = rows[-1]
            if self.first is None:
                self.first = rows[0]
        return rows

    def tells(self, told: Told) -> str:
        """Return a field of PageInfo as JSON; the key is the last column."""
        match told:
            case Told.HAS_NEXT_PAGE:
                return "true" if self.has_next else "false"
            case Told.HAS_PREVIOUS_PAGE:
                return "false" if self.asked.after is None else "true"
            case Told.START_CURSOR:
                return self._cursor(self.first)
            case Told.END_CURSOR:
                return self._cursor(self.last)
            case _:
                assert_never(told)

    def _cursor(self, row: Any) -> str:  # noqa: ANN401 - a row
        return "null" if row is None else f'"{cursor.encode_framed(self.asked.frame, row[-1])}"'


@dataclass(frozen=True, slots=True)
class Layout:
    """How a page is written; `heads` columns stand before those of the rows.

    One that `streams` can be written as its rows come: it does not make several lists of the same rows.
    """

    parts: tuple[Part, ...]
    heads: int
    streams: bool

    def pieces(self, rows: Texts, asked: Asked) -> list[str]:
        """Return the page's object in pieces, to be joined with what stands around it."""
        seen = Seen(asked)
        page = seen.shown(self._rows(rows))
        found: list[str] = []
        for part in self.parts:
            match part:
                case str():
                    found.append(part)
                case Items():
                    found += part.pieces(page)
                case _:
                    found.append(_one(part, rows, seen))
        return found

    async def stream(self, batches: AsyncGenerator[Texts, None], asked: Asked) -> AsyncGenerator[str, None]:
        """Yield the page's object in pieces, a batch of rows in each, and close the batches; needs `streams`."""
        seen = Seen(asked)
        async with aclosing(batches):
            rows: Texts = await anext(batches, [])
            for part in self.parts:
                match part:
                    case str():
                        yield part
                    case Items():
                        yield "".join(part.pieces(seen.shown(self._rows(rows))))
                        async for more in batches:
                            if shown := seen.shown(more):
                                yield "".join((",", *part.pieces(shown)))
                    case _:
                        yield _one(part, rows, seen)

    def _rows(self, rows: Texts) -> Texts:
        """Leave out the row that only tells what is known before the rows."""
        return [] if self.heads and rows[0][self.heads] is None else rows


def _one(part: Head | Told, rows: Texts, seen: Seen) -> str:
    return seen.tells(part) if isinstance(part, Told) else rows[0][part.column] or "null"
