"""Keyset pages: a page costs the same wherever it lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.types import TypeEngine

PAGE_MAX: Final = 1000

_UTF8: Final = sa.literal_column("'UTF8'", sa.Text)
_BASE64: Final = sa.literal_column("'base64'", sa.Text)
# `encode` breaks lines; what has no counterpart is dropped.
_NOT_IN_URLS: Final = sa.literal_column("E'+/=\\n'", sa.Text)
_IN_URLS: Final = sa.literal_column("'-_'", sa.Text)

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A list's sort: columns that together are unique, the first decides most."""

    name: str
    columns: tuple[ColumnElement[Any], ...]
    descending: bool = False
    numbers: bool = False
    """The key's parts are numbers, not texts."""

    @property
    def types(self) -> tuple[TypeEngine[Any], ...]:
        """The types of a key's parts."""
        return tuple(column.type for column in self.columns)

    def after(self, key: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        """Return the condition that a row lies behind the key."""
        here, there = sa.tuple_(*self.columns), sa.tuple_(*key)
        return here < there if self.descending else here > there

    def key_text(self) -> ColumnElement[Any]:
        """Return a row's key as it stands in its cursor: a JSON list without brackets."""
        texts = [sa.cast(column, sa.Text) for column in self.columns]
        parts = texts if self.numbers else [sa.cast(sa.func.to_json(text), sa.Text) for text in texts]
        written: ColumnElement[Any] = parts[0]
        for part in parts[1:]:
            written = written.concat(sa.literal_column("','", sa.Text)).concat(part)
        return written

    def cursor(self, before: ColumnElement[Any], behind: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return a row's cursor: its key between the two texts, in base64 that a URL takes."""
        written = before.concat(self.key_text()).concat(behind)
        encoded = sa.func.encode(sa.func.convert_to(written, _UTF8), _BASE64)
        return sa.func.translate(encoded, _NOT_IN_URLS, _IN_URLS, type_=sa.Text)

    def clauses(self) -> tuple[ColumnElement[Any], ...]:
        """Return the ORDER BY clauses."""
        return tuple(column.desc() if self.descending else column.asc() for column in self.columns)
