"""A statement compiled once: its text, which of the values go where, and how its rows become the response's JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql import asyncpg as dialect
from sqlalchemy.sql.compiler import SQLCompiler

from db.connections import Planning
from db.views.page import Layout, Texts
from db.views.selection import Asked, PageSelection, Selection
from db.views.statement import page_statement, row_statement

_DIALECT: Final = dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it without types


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL as PostgreSQL takes it, and the places of its parameters among a plan's values."""

    text: str
    places: tuple[int, ...]
    planning: Planning = Planning.FREE

    def arguments(self, values: Sequence[Any]) -> list[Any]:
        """Return the values in the order of the statement's parameters."""
        return [values[place] for place in self.places]


def compile_statement(statement: ClauseElement, asked: Sequence[Asked] = ()) -> Compiled:
    """Compile a statement, a read of `asked` if any, whose parameters are named by their places (`v0`, `v1`, …)."""
    built = statement.compile(dialect=_DIALECT)
    if not isinstance(built, SQLCompiler):
        raise TypeError(f"not a statement with values: {statement!r}")
    places = tuple(int(name.removeprefix("v")) for name in built.positiontup or ())
    return Compiled(str(built), places, _planning(asked))


def _planning(asked: Sequence[Asked]) -> Planning:
    if any(where.skewed for each in asked for where in each.where):
        return Planning.EACH
    # What is nested is found by its row's key, whatever else is asked of it.
    return Planning.ONCE if asked and not asked[0].where else Planning.FREE


@dataclass(frozen=True, slots=True)
class RowPlan:
    """One row as one JSON text."""

    compiled: Compiled

    def json(self, rows: Texts) -> str | None:
        """Return the row's object, None when there is no row."""
        return rows[0][0] if rows else None


@dataclass(frozen=True, slots=True)
class PagePlan:
    """A page, written from its rows."""

    compiled: Compiled
    layout: Layout

    def json(self, rows: Texts, asked: Asked) -> str:
        """Return the page's object."""
        return "".join(self.layout.pieces(rows, asked))


Plan = RowPlan | PagePlan


def make_plan(selection: Selection | PageSelection, asked: Sequence[Asked]) -> Plan:
    """Compile a selection; raises NotCompilable."""
    if isinstance(selection, Selection):
        return RowPlan(compile_statement(row_statement(selection, asked), asked))
    statement, layout = page_statement(selection, asked)
    return PagePlan(compile_statement(statement, asked), layout)
