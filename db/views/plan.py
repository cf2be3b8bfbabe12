"""A statement compiled once: its text, which of the values go where, and how its rows become the response's JSON."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import Select
from sqlalchemy.dialects.postgresql import asyncpg as dialect
from sqlalchemy.sql.compiler import SQLCompiler

from db.views.selection import Asked, Constant, PageField, PageSelection, Selection
from db.views.statement import LISTS, page_statement, row_statement

_DIALECT: Final = dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it without types

Texts = Sequence[Any]
"""Rows of JSON texts, by place: of a page the heads, which the first row has, then each list's item."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL as PostgreSQL takes it, and the places of its parameters among a plan's values."""

    text: str
    places: tuple[int, ...]
    skewed: bool = False
    """PostgreSQL is to plan it for each value anew."""

    def arguments(self, values: Sequence[Any]) -> list[Any]:
        """Return the values in the order of the statement's parameters."""
        return [values[place] for place in self.places]


def compile_statement(statement: Select[Any], asked: Sequence[Asked] = ()) -> Compiled:
    """Compile a statement, made for these reads, whose parameters are named by their places (`v0`, `v1`, …)."""
    built = statement.compile(dialect=_DIALECT)
    if not isinstance(built, SQLCompiler):
        raise TypeError(f"not a statement with values: {statement!r}")
    places = tuple(int(name.removeprefix("v")) for name in built.positiontup or ())
    return Compiled(str(built), places, any(where.skewed for each in asked for where in each.where))


@dataclass(frozen=True, slots=True)
class RowPlan:
    """One row as one JSON text."""

    compiled: Compiled

    def json(self, rows: Texts) -> str | None:
        """Return the row's object, None when there is no row."""
        return rows[0][0] if rows else None


@dataclass(frozen=True, slots=True)
class PagePlan:
    """A page, written as the selection orders its parts.

    `parts` are texts to write as they are, and columns to read: the heads' are below `heads`, the lists' follow.
    """

    compiled: Compiled
    parts: tuple[str | int, ...]
    heads: int

    @property
    def streams(self) -> bool:
        """Whether rows can be written as they come: not when several lists are made of the same rows."""
        return sum(isinstance(part, int) and part >= self.heads for part in self.parts) <= 1

    def json(self, rows: Texts) -> str:
        """Return the page's object."""
        return "".join(self.pieces(rows))

    def pieces(self, rows: Texts) -> list[str]:
        """Return the page's object in pieces, to be joined with what stands around it."""
        found: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
            elif part < self.heads:
                found.append(rows[0][part] or "null")
            else:
                found.append(",".join([text for row in rows if (text := row[part]) is not None]))
        return found

    async def stream(self, batches: AsyncGenerator[Any, None]) -> AsyncGenerator[str, None]:
        """Yield the page's object in pieces, a batch of rows in each, and close the batches; needs `streams`."""
        async with aclosing(batches):
            first: Texts = await anext(batches, [])
            for part in self.parts:
                match part:
                    case str():
                        yield part
                    case int() if part < self.heads:
                        yield first[0][part] or "null"
                    case _:
                        yield ",".join(text for row in first if (text := row[part]) is not None)
                        async for rows in batches:
                            yield "," + ",".join(text for row in rows if (text := row[part]) is not None)


Plan = RowPlan | PagePlan


def make_plan(selection: Selection | PageSelection, asked: Sequence[Asked]) -> Plan:
    """Compile a selection; raises NotCompilable."""
    if isinstance(selection, Selection):
        return RowPlan(compile_statement(row_statement(selection, asked), asked))
    compiled = compile_statement(page_statement(selection, asked), asked)
    lists = [field for field in selection.fields if isinstance(field, PageField) and field.part in LISTS]
    others = [field for field in selection.fields if isinstance(field, PageField) and field.part not in LISTS]
    places = {field.key: number for number, field in enumerate([*others, *lists])}
    parts: list[str | int] = ["{"]
    for number, field in enumerate(selection.fields):
        key = f"{',' if number else ''}{orjson.dumps(field.key).decode()}:"
        match field:
            case Constant(text=text):
                parts.append(key + orjson.dumps(text).decode())
            case PageField() if field in lists:
                parts.extend((key + "[", places[field.key], "]"))
            case _:
                parts.extend((key, places[field.key]))
    parts.append("}")
    return PagePlan(compiled, tuple(parts), len(others))
