"""Liveness: what silences and clocks make of nodes, and the note by which a process says that it listens."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from db import liveness as store
from db.connections import Row
from db.database import Database, Transaction
from db.standings import save_changes, standings
from domain.ids import NodeId
from domain.liveness import LIFECYCLE_TYPES, Hearing, Lives, Patience, judge
from domain.node import Connectivity
from domain.pool_policy import read_policy
from domain.standing import Standing
from reconcilers.loop import Activation, Reconciler
from reconcilers.sweep import sweep

PAUSE_SECONDS: Final = 5.0
REACHABLE_PAUSE_SECONDS: Final = 5.0
_LOCK: Final = 0x666C_6565_7403


def reachable(database: Database) -> Reconciler:
    """Make the note of a process that nodes can reach: while nobody makes it, silence proves nothing."""

    async def activate() -> Activation:
        async with database.transaction() as tx:
            await store.listen(tx)
        return Activation(0, more=False)

    return Reconciler("reachable", activate, REACHABLE_PAUSE_SECONDS)


def liveness(database: Database, patience: Patience, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler of NodeUnreachable and ClockSkew; of many processes one works at a time."""

    async def settle(tx: Transaction, nodes: Sequence[NodeId]) -> int:
        return await _settle(tx, nodes, patience, now())

    async def activate() -> Activation:
        return Activation(await sweep(database, _LOCK, store.of_note, settle), more=False)

    return Reconciler("liveness", activate, PAUSE_SECONDS, database.heard_again)


async def _settle(tx: Transaction, nodes: Sequence[NodeId], patience: Patience, now: datetime) -> int:
    """Write what is to be said of these nodes; returns of how many. Only those are locked, and looked at again."""
    seconds = await store.listened_seconds(tx)
    found = await _judged(tx, await store.facts(tx, nodes, locked=False), patience, seconds, now)
    if not found:
        return 0
    held = await store.facts(tx, [standing.node_id for standing, _ in found], locked=True)
    decided = await _judged(tx, held, patience, seconds, now)
    if decided:
        await store.save_away(tx, [(standing.node_id, lives.away) for standing, lives in decided])
        changes = [(standing, lives.changed) for standing, lives in decided if lives.changed is not None]
        await save_changes(tx, changes)
    return len(decided)


async def _judged(
    tx: Transaction, rows: Sequence[Row], patience: Patience, listened_seconds: float, now: datetime
) -> list[tuple[Standing, Lives]]:
    known = await standings(tx, rows, LIFECYCLE_TYPES)
    found = []
    for row in rows:
        standing = known[NodeId(row.node_id)]
        hearing = Hearing(
            silent_seconds=row.silent_seconds,
            last_seen_at=row.last_seen_at,
            away=Connectivity(row.away) if row.away else None,
            skew_seconds=row.clock_skew_seconds,
        )
        allowed = patience.of_pool(read_policy(row.policy).lost_after if row.policy else None)
        lives = judge(hearing, standing, allowed, listened_seconds, now)
        if lives is not None:
            found.append((standing, lives))
    return found
