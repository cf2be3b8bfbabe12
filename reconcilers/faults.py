"""Faults whose effects wait for something else: a GPU that nobody could place is found, or one with a fault left.

What a report or an operator changes is settled with it; this looks again at what holds, at whatever changed beside it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from db.database import Database, Transaction
from db.health_states import health_states, save_health_changes
from db.node_faults import nodes_with_faults
from domain.fault_effects import HealthChange, settle
from domain.ids import NodeId
from domain.standing import Standing
from reconcilers.loop import Activation, Reconciler
from reconcilers.sweep import sweep

PAUSE_SECONDS: Final = 5.0
_LOCK: Final = 0x666C_6565_7405


def faults(database: Database, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler; of many processes one works at a time."""

    async def settle_page(tx: Transaction, nodes: Sequence[NodeId]) -> int:
        return await settle_faults(tx, nodes, now())

    async def activate() -> Activation:
        return Activation(await sweep(database, _LOCK, nodes_with_faults, settle_page), more=False)

    return Reconciler("faults", activate, PAUSE_SECONDS)


async def settle_faults(tx: Transaction, nodes: Sequence[NodeId], now: datetime) -> int:
    """Write what the faults of nodes do as the nodes are; returns of how many. Only nodes that change are locked."""
    found = await _changes(tx, nodes, now, locked=False)
    if not found:
        return 0
    decided = await _changes(tx, [standing.node_id for standing, _ in found], now, locked=True)
    await save_health_changes(tx, decided)
    return len(decided)


async def _changes(
    tx: Transaction, nodes: Sequence[NodeId], now: datetime, *, locked: bool
) -> list[tuple[Standing, HealthChange]]:
    states = await health_states(tx, nodes, locked=locked)
    decided = [(state.standing, settle(state, now)) for state in states.values()]
    return [(standing, change) for standing, change in decided if change is not None]
