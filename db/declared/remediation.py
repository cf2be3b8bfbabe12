"""Runs of remediation as they are read."""

from typing import Final

from db.paging import Order
from db.tables import CommandRow, RemediationRunRow, table_of
from db.views.filters import one_of
from db.views.view import Relation, View, declare

runs: Final = table_of(RemediationRunRow)
_commands: Final = table_of(CommandRow)

NEWEST_FIRST: Final = Order("newest", (runs.c.id,), descending=True)

RUNS: Final = declare(
    RemediationRunRow,
    View(
        "RemediationRun",
        runs,
        key=runs.c.id,
        tenant=runs.c.tenant_id,
        documents={"faults": runs.c.faults},
        relations={"command": Relation(CommandRow, ((_commands.c.id, runs.c.command_id),))},
        filters={"id": one_of(runs.c.id)},
    ),
)
