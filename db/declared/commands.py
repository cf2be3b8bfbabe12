"""Commands as they are read."""

from typing import Final

from db.paging import Order
from db.tables import CommandRow, table_of
from db.views.filters import equal, one_of
from db.views.view import View, declare

commands: Final = table_of(CommandRow)

NEWEST_FIRST: Final = Order("newest", (commands.c.id,), descending=True)
BY_SEQUENCE: Final = Order("sequence", (commands.c.sequence,), numbers=True)

COMMANDS: Final = declare(
    CommandRow,
    View(
        "Command",
        commands,
        key=commands.c.id,
        tenant=commands.c.tenant_id,
        filters={
            "id": one_of(commands.c.id),
            "node_id": equal(commands.c.node_id),
            "state": one_of(commands.c.state),
            "kind": one_of(commands.c.kind),
        },
    ),
)
