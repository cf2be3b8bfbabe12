"""The hygiene sweep: drivers, agents and certificates that are not what their nodes are to have (rule 12)."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from db.connections import Row
from db.database import Database, Transaction
from db.node_spec import nodes_to_sweep, upkeep_facts, upkeep_of
from db.standings import save_changes, standings
from domain.hygiene import HYGIENE_TYPES
from domain.hygiene import hygiene as upkeep_observed
from domain.ids import NodeId
from domain.standing import Changed, Standing, observe
from reconcilers.loop import Activation, Reconciler
from reconcilers.sweep import sweep

PAUSE_SECONDS: Final = 300.0
_LOCK: Final = 0x666C_6565_7404


def hygiene(database: Database, agent_version_min: str | None, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler of DriverMismatch, DaemonOutdated and CertExpiring; of many processes one works at a time."""

    async def judged(tx: Transaction, rows: Sequence[Row]) -> list[tuple[Standing, Changed]]:
        known = await standings(tx, rows, HYGIENE_TYPES)
        found, at = [], now()
        for row in rows:
            standing = known[NodeId(row.node_id)]
            changed = observe(standing, upkeep_observed(upkeep_of(row), agent_version_min, at), at)
            if changed is not None:
                found.append((standing, changed))
        return found

    async def settle(tx: Transaction, nodes: Sequence[NodeId]) -> int:
        found = await judged(tx, await upkeep_facts(tx, nodes, locked=False))
        if not found:
            return 0
        changing = [standing.node_id for standing, _ in found]
        decided = await judged(tx, await upkeep_facts(tx, changing, locked=True))
        await save_changes(tx, decided)
        return len(decided)

    async def activate() -> Activation:
        return Activation(await sweep(database, _LOCK, nodes_to_sweep, settle), more=False)

    return Reconciler("hygiene", activate, PAUSE_SECONDS)
