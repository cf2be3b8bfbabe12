"""A node's labels, one row each."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import FromClause

from db.paging import Order
from db.tables import NodeRow, table_of
from db.views.view import Relation, View, declare
from domain.labels import LabelSource

_nodes: Final = table_of(NodeRow)
_entries: Final = sa.table("label", sa.column("key", sa.Text), sa.column("value", sa.Text))


class LabelRow:
    """An entry of a node's effective labels, and the source whose value holds."""

    key: str
    value: str
    source: str


_COVERING: Final = (LabelSource.SYSTEM, LabelSource.INVENTORY, LabelSource.OPERATOR)

declare(
    LabelRow,
    View(
        "Label",
        _entries,
        expressions={
            "source": sa.case(
                *(
                    (_nodes.c[f"{source}_labels"].has_key(_entries.c.key), sa.literal_column(f"'{source}'", sa.Text))
                    for source in _COVERING
                ),
                else_=sa.literal_column(f"'{LabelSource.AGENT}'", sa.Text),
            )
        },
    ),
)


def _labels(_draft: object, name: str) -> FromClause:
    return sa.func.jsonb_each_text(_nodes.c.labels).table_valued(*_entries.c, name=name)


LABELS_OF_NODE: Final = Relation(
    LabelRow, many=True, order=Order("key", (sa.collate(_entries.c.key, "C"),)), source=_labels, size=24
)
