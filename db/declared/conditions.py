"""Conditions and where a node's inventory stands, as they are read."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by

from db.tables import ConditionRow, NodeInventoryRow, table_of
from db.views.filters import one_of
from db.views.view import Expression, View, declare
from domain.node import InventoryState

_conditions: Final = table_of(ConditionRow)
_inventory: Final = table_of(NodeInventoryRow)

CONDITIONS: Final = declare(
    ConditionRow,
    View("Condition", _conditions, tenant=_conditions.c.tenant_id, filters={"status": one_of(_conditions.c.status)}),
)


def _state(state: InventoryState) -> Expression:
    return sa.literal_column(f"'{state}'", sa.Text)


_STATE: Final[Expression] = sa.case(
    (_inventory.c.reported.is_(None), _state(InventoryState.NONE)),
    (
        _inventory.c.applied == _inventory.c.reported,
        sa.case(
            (
                sa.func.starts_with(_inventory.c.applied_digest, sa.literal_column("'advisory:'", sa.Text)),
                _state(InventoryState.ADVISORY),
            ),
            else_=_state(InventoryState.APPLIED),
        ),
    ),
    (_inventory.c.failed == _inventory.c.reported, _state(InventoryState.FAILED)),
    else_=_state(InventoryState.PENDING),
)


def _bytes(escaped: str) -> Expression:
    return sa.literal_column(f"'\\x{escaped}'::bytea", sa.LargeBinary)


def _utf8(text: Expression) -> Expression:
    return sa.func.convert_to(text, sa.literal_column("'UTF8'"), type_=sa.LargeBinary)


def _digest(hashes: Expression) -> Expression:
    """Return `domain.digest.inventory_digest` of a map of hashes; null for none."""
    section = sa.func.jsonb_each_text(hashes).table_valued(
        sa.column("key", sa.Text), sa.column("value", sa.Text), name="section"
    )
    line = _utf8(section.c.key).concat(_bytes("00")).concat(_utf8(section.c.value)).concat(_bytes("0a"))
    lines = sa.func.string_agg(
        line, aggregate_order_by(_bytes(""), sa.collate(section.c.key, "C")), type_=sa.LargeBinary
    )
    hashed = sa.func.sha256(sa.func.coalesce(lines, _bytes("")))
    digest = sa.func.encode(hashed, sa.literal_column("'hex'"), type_=sa.Text)
    return sa.case(
        (hashes.is_not(None), sa.select(digest).select_from(section).correlate_except(section).scalar_subquery())
    )


INVENTORY: Final = declare(
    NodeInventoryRow,
    View(
        "InventoryStatus",
        _inventory,
        key=_inventory.c.node_id,
        tenant=_inventory.c.tenant_id,
        expressions={
            "state": _STATE,
            "reported_digest": _digest(_inventory.c.reported),
            "missing_sections": _inventory.c.missing,
        },
    ),
)
