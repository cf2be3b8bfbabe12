"""From a selection to one statement whose rows are JSON text, and how they are written together.

One text per row: joining them is the reader's work, because PostgreSQL is slow at building one large text
(docs/performance.md has the figures).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy import Select

from db.views import json_text
from db.views.draft import Draft, Labelled
from db.views.json_text import NotCompilable, named
from db.views.objects import LISTS, ONE, PageObject, columns_of, row_object
from db.views.page import Head, Items, Layout, Part, Told
from db.views.selection import Asked, Constant, PageField, PagePart, PageSelection, Selection
from db.views.view import Expression


def row_statement(selection: Selection, asked: Sequence[Asked]) -> Select[Any]:
    """Return the statement of one row: its JSON text, or no row."""
    draft = Draft(asked)
    columns = columns_of(draft, selection)
    opened = draft.open(selection.view, 0, [column for _, column in columns])
    row = opened.sorted(columns).limit(ONE).subquery(draft.name("x"))
    return sa.select(_as_text(json_text.object_of(row)).label("r0"))


def page_statement(selection: PageSelection, asked: Sequence[Asked]) -> tuple[Select[Any], Layout]:
    """Return the statement of a page, and how the page is written from its rows.

    Its columns are what is known before the first row (`h0`, …, the same in each row), what is to be written of each
    row (`r0`, …), and the row's key. With something known before, a page without rows gives one row, whose `r0` is
    null. There is one row more than asked when the page is to tell whether another one follows.
    """
    lists = [each for each in selection.fields if isinstance(each, PageField) and each.part in LISTS]
    known = [each for each in selection.fields if _is_known_before(each, selection.fields, lists)]
    page = _Page(PageObject(Draft(asked), selection, None, 0), known)
    parts = page.written()
    return page.statement(), Layout(tuple(parts), len(known), streams=len(lists) == 1)


def _is_known_before(
    part: PageField | Constant, fields: Sequence[PageField | Constant], lists: Sequence[PageField]
) -> bool:
    """Say whether a part must be known before the rows: a list that is alone is written as its rows come."""
    if isinstance(part, Constant):
        return False
    is_first = len(lists) == 1 and fields.index(part) < fields.index(lists[0])
    return part.part is PagePart.TOTAL_COUNT or (part.part is PagePart.PAGE_INFO and is_first)


@dataclass(slots=True)
class _Page:
    """The columns of a page's statement, in the making."""

    page: PageObject
    known: Sequence[PageField | Constant]
    """The parts of which each has a column before those of the rows."""
    heads: list[Expression] = field(default_factory=list)
    items: list[Expression] = field(default_factory=list)
    told: set[Told] = field(default_factory=set)
    has_list: bool = False

    def written(self) -> list[Part]:
        """Return the page's object as it is written."""
        parts: list[Part] = ["{"]
        for number, each in enumerate(self.page.selection.fields):
            parts.append(_key(number, each.key))
            if isinstance(each, Constant):
                parts.append(orjson.dumps(each.text).decode())
            elif each in self.known:
                parts.append(self._head(each))
            elif each.part in LISTS:
                parts.extend(("[", Items(self._item(each)), "]"))
                self.has_list = True
            else:
                parts.extend(self._told(each))
        parts.append("}")
        return parts

    def statement(self) -> Select[Any]:
        """Return the statement with the columns that the parts read."""
        heads = [(f"h{number}", _as_text(column)) for number, column in enumerate(self.heads)]
        rows = [(f"r{number}", _as_text(column)) for number, column in enumerate(self.items)]
        if Told.START_CURSOR in self.told or Told.END_CURSOR in self.told:
            rows.append(("key", self.page.order.key_text()))
        if not self.told and not self.has_list:
            return sa.select(*(column.label(key) for key, column in [*heads, ("here", ONE)]))
        rows = rows or [("here", ONE)]
        return self._behind(heads, rows) if heads else self._rows(rows)

    def _rows(self, rows: Labelled) -> Select[Any]:
        opened = self.page.open([column for _, column in named(rows)])
        first = self.page.bound.first
        return opened.sorted(rows).limit(first + ONE if Told.HAS_NEXT_PAGE in self.told else first)

    def _behind(self, heads: Labelled, rows: Labelled) -> Select[Any]:
        order = self.page.order
        sorts = [(f"o{number}", column) for number, column in enumerate(order.columns)]
        head = sa.select(*(column.label(key) for key, column in heads)).subquery(self.page.draft.name("h"))
        found = self._rows([*rows, *sorts]).subquery(self.page.draft.name("x"))
        shown = [found.c[key] for key, _ in rows]
        by = [found.c[key].desc() if order.descending else found.c[key] for key, _ in sorts]
        return sa.select(*head.c, *shown).select_from(head.outerjoin(found, sa.true())).order_by(*by)

    def _head(self, part: PageField) -> Head:
        is_count = part.part is PagePart.TOTAL_COUNT
        self.heads.append(self.page.total_count() if is_count else self.page.told_before(part))
        return Head(len(self.heads) - 1)

    def _told(self, info: PageField) -> list[Part]:
        parts: list[Part] = ["{"]
        for number, each in enumerate(info.fields):
            parts.append(_key(number, each.key))
            if isinstance(each, Constant):
                parts.append(orjson.dumps(each.text).decode())
            else:
                told = Told[each.name.upper()]
                self.told.add(told)
                parts.append(told)
        parts.append("}")
        return parts

    def _item(self, items: PageField) -> tuple[str | int, ...]:
        """Return how a row of a list is written."""
        if items.part is PagePart.NODES:
            if items.rows is None:
                raise NotCompilable("a list of nothing")
            return ("", self._column(row_object(self.page.draft, items.rows)), "")
        parts: list[str | int] = []
        text = "{"
        for number, each in enumerate(items.fields):
            text += _key(number, each.key)
            if isinstance(each, Constant):
                text += orjson.dumps(each.text).decode()
            elif each.rows is not None:
                parts.extend((text, self._column(row_object(self.page.draft, each.rows))))
                text = ""
            else:
                # In base64 nothing is to be escaped.
                parts.extend((text + '"', self._column(self.page.cursor())))
                text = '"'
        return (*parts, text + "}")

    def _column(self, column: Expression) -> int:
        self.items.append(column)
        return len(self.known) + len(self.items) - 1


def _key(number: int, key: str) -> str:
    return f"{',' if number else ''}{orjson.dumps(key).decode()}:"


def _as_text(expression: Expression) -> Expression:
    return sa.cast(expression, sa.Text)
