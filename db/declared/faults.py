"""Faults of kernel logs as they are read."""

from typing import Final

from db.paging import Order
from db.tables import NodeFaultRow, table_of
from db.views.view import View, declare

faults: Final = table_of(NodeFaultRow)

NEWEST_FIRST: Final = Order("newest", (faults.c.last_at, faults.c.boot_id, faults.c.key), descending=True)

FAULTS: Final = declare(NodeFaultRow, View("NodeFault", faults, tenant=faults.c.tenant_id))
