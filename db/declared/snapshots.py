"""Snapshots as they are read, with the documents of their sections."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement

from db.paging import Order
from db.tables import SectionRow, SnapshotRow, table_of
from db.views.filters import equal, one_of
from db.views.view import Expression, Filter, View, declare
from domain.node import Trust
from domain.sections import SECTION_NAMES

snapshots: Final = table_of(SnapshotRow)
_sections: Final = table_of(SectionRow)

NEWEST_FIRST: Final = Order("newest", (snapshots.c.id,), descending=True)
AS_OF: Final = Order("as of", (snapshots.c.received_at, snapshots.c.id), descending=True)
"""The first that a time keeps is the one the node had then."""


def _document(name: str) -> Expression:
    """Return a section's document: null when the snapshot has no such section."""
    section = _sections.alias(f"{name}_section")
    named = sa.literal_column(f"'{name}'", sa.Text)
    sha256 = snapshots.c.sections.op("->>", return_type=sa.Text())(named)
    found = (
        sa.select(section.c.document)
        .where(
            section.c.node_id == snapshots.c.node_id,
            section.c.name == named,
            section.c.sha256 == sha256,
            section.c.tenant_id == snapshots.c.tenant_id,
        )
        .correlate_except(section)
    )
    return found.scalar_subquery()


def _received_by(time: Expression) -> ColumnElement[bool]:
    return snapshots.c.received_at <= time


SNAPSHOTS: Final = declare(
    SnapshotRow,
    View(
        "Snapshot",
        snapshots,
        key=snapshots.c.id,
        tenant=snapshots.c.tenant_id,
        expressions={
            "advisory": snapshots.c.trust == sa.literal_column(f"'{Trust.TENANT_CONTROLLED}'", sa.Text),
        },
        same=frozenset({"sections"}),
        # The trailing underscore is that of the graph's Python names.
        documents={f"{name}_": _document(name) for name in SECTION_NAMES},
        filters={
            "id": one_of(snapshots.c.id),
            "node_id": equal(snapshots.c.node_id),
            "digest": equal(snapshots.c.digest),
            "time": Filter(_received_by, (sa.DateTime(timezone=True),)),
        },
    ),
)
