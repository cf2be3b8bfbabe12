"""Attempts at acceptance as they are read."""

from typing import Final

from db.paging import Order
from db.tables import AcceptanceRow, table_of
from db.views.view import View, declare

attempts: Final = table_of(AcceptanceRow)

NEWEST_FIRST: Final = Order("newest", (attempts.c.attempt,), descending=True, numbers=True)

ATTEMPTS: Final = declare(
    AcceptanceRow,
    View("Acceptance", attempts, tenant=attempts.c.tenant_id, documents={"checks": attempts.c.checks}),
)
