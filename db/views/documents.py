"""JSON documents: what stands for one while its fields are built, and the facts that it says are not known."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import FromClause
from sqlalchemy.dialects.postgresql import JSONB

from db.paging import Order
from db.views.view import Expression, Relation, View, declare

PART: Final = sa.table("part", sa.column("document", JSONB), sa.column("place", sa.BigInteger))
"""Stands for a document, or one of a list of them."""
_entries: Final = sa.table("entry", sa.column("key", sa.Text), sa.column("value", sa.Text))


class UnknownFactRow:
    """An entry of a map of facts that are not known: the fact's path, and why it has no value."""

    fact: str
    availability: str


declare(
    UnknownFactRow,
    View("UnknownFact", _entries, expressions={"fact": _entries.c.key, "availability": _entries.c.value}),
)


def unknown_facts(document: Expression) -> Relation:
    """Return the relation to the entries of such a map, by path."""

    def entries(_draft: object, name: str) -> FromClause:
        return sa.func.jsonb_each_text(document).table_valued(*_entries.c, name=name)

    # As Python sorts texts: by code point, whatever the database's collation.
    by_path = Order("fact", (sa.collate(_entries.c.key, "C"),))
    return Relation(UnknownFactRow, many=True, order=by_path, source=entries, size=4)


_UNAVAILABLE: Final = PART.c.document.op("->", return_type=JSONB())(sa.literal_column("'unavailable'", sa.Text))
PART_RELATIONS: Final = {"not_known": unknown_facts(_UNAVAILABLE)}
"""What any section's document may be asked for besides its own fields."""
