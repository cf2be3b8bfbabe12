"""The inventory reconciler: claims nodes whose report is complete, decides in `domain`, writes set-based.

Pending is state in the database, so nothing is lost with a process. A batch that fails is done again one node at a
time; a node that fails by itself is recorded with its error, keeps its last good inventory and stops nobody else.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, assert_never

import structlog

from db import conditions as condition_store
from db import events as event_store
from db import inventory as store
from db.conditions import NodeCondition
from db.connections import Row, is_transient
from db.database import Database, Transaction
from db.devices import DeviceTaken
from db.events import NewEvent
from db.identifiers import new_id_after
from db.inventory import Applied
from db.node_changes import node_states, tell_changes
from db.nodes import DecidedNode, save_decided
from db.together import together
from domain.digest import inventory_digest
from domain.errors import InvalidSection
from domain.gpu_models import GPU_MODELS_VERSION
from domain.ids import NodeId, SnapshotId
from domain.inventory import InventoryOutcome, Unchanged
from domain.node import Trust
from domain.second_machine import WHY, SecondMachine, second_machine
from domain.trust import is_advisory, marked, take_report
from reconcilers.faults import settle_faults
from reconcilers.inventory_claims import Claim, key_holders, load_claims, other_holders
from reconcilers.inventory_writes import Decision, save_decisions
from reconcilers.loop import Activation, Reconciler

BATCH_MAX: Final = 64
LANES: Final = 2
"""Batches at a time while many wait: one is decided while PostgreSQL writes the other."""
PAUSE_SECONDS: Final = 1.0
ERROR_LENGTH_MAX: Final = 2000

_log = structlog.get_logger("inventory")


def inventory(database: Database, now: Callable[[], datetime]) -> Reconciler:
    """Make the reconciler that applies inventories."""

    async def activate() -> Activation:
        first = await apply_pending(database, now)
        rest = await _apply_in_lanes(database, now) if first.more else 0
        return Activation(first.done + rest, more=False)

    return Reconciler("inventory", activate, PAUSE_SECONDS, database.inventory_pending)


async def apply_pending(database: Database, now: Callable[[], datetime], limit: int = BATCH_MAX) -> Activation:
    """Apply up to `limit` nodes' reports."""
    claimed: list[NodeId] = []
    try:
        async with database.transaction() as tx:
            rows = await store.claim_pending(tx, limit)
            claimed = [NodeId(row.node_id) for row in rows]
            if rows:
                await _apply(tx, rows, now())
    except Exception as error:
        if not claimed:
            raise
        _log.warning("a batch failed; going on one node at a time", nodes=len(claimed), error=repr(error))
        for node_id in claimed:
            await _apply_alone(database, node_id, now)
    return Activation(len(claimed), more=len(claimed) == limit)


async def _apply_in_lanes(database: Database, now: Callable[[], datetime]) -> int:
    """Apply until nothing waits; returns how many nodes' reports that were. Lanes never take the same node."""

    async def lane() -> int:
        done = 0
        while (activation := await apply_pending(database, now)).more:
            done += activation.done
        return done + activation.done

    return sum(await together(*(lane() for _ in range(LANES))))


async def _apply_alone(database: Database, node_id: NodeId, now: Callable[[], datetime]) -> None:
    hashes: dict[str, str] = {}
    try:
        async with database.transaction() as tx:
            rows = await store.claim_pending(tx, 1, node_id)
            if rows:
                hashes = rows[0].reported
                await _apply(tx, rows, now())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded on the node and logged
        if isinstance(error, DeviceTaken) or is_transient(error):
            _log.info("a node waits for the next pass", node_id=node_id, reason=repr(error))
            return
        _log.exception("an inventory cannot be applied", node_id=node_id)
        text = error.message if isinstance(error, InvalidSection) else repr(error)
        async with database.transaction() as tx:
            await store.mark_failed(tx, node_id, hashes, text[:ERROR_LENGTH_MAX])


async def _apply(tx: Transaction, rows: list[Row], now: datetime) -> None:
    decisions: list[Decision] = []
    standing: list[Applied] = []
    claims = await load_claims(tx, rows)
    holders = await key_holders(tx, claims)
    for claim in claims:
        trust = Trust(claim.row.trust)
        controlled = trust is Trust.TENANT_CONTROLLED
        refused = None if controlled else second_machine(claim.state, claim.report, now)
        if refused is not None:
            await _refuse(tx, claim, refused)
            continue
        # The same set planned anew (a conflict ended) keeps its snapshot.
        snapshot_id = claim.row.snapshot_id
        report = replace(claim.report, key_holders=other_holders(holders, claim))
        outcome = take_report(claim.state, report, trust, claim.row.applied_digest, now)
        noted = controlled
        waits = claim.state.waits
        match outcome:
            case InventoryOutcome():
                waits = outcome.devices.waits
                if outcome.changed_sections:
                    snapshot_id = new_id_after("inv", snapshot_id)
                decisions.append(Decision(claim, outcome, SnapshotId(snapshot_id)))
                if outcome.hardware.trusted and outcome.hardware.key is not None:
                    # Whoever comes later in the batch with the same key is not the first.
                    holders.setdefault(outcome.hardware.key, (claim.node_id, claim.tenant_id))
            case Unchanged():
                noted = is_advisory(claim.row.applied_digest)
            case _:
                assert_never(outcome)
        digest = marked(inventory_digest(claim.report.hashes), advisory=noted)
        standing.append(Applied(claim.node_id, digest, snapshot_id, waits))
    told = {decision.claim.node_id for decision in decisions if decision.outcome.events}
    quiet = [(claim.tenant_id, claim.node_id) for claim in claims if claim.node_id not in told]
    before = await node_states(tx, [node_id for _, node_id in quiet])
    await save_decisions(tx, decisions)
    await store.mark_applied(tx, standing, GPU_MODELS_VERSION)
    planned = {each.claim.node_id: each.outcome.devices for each in decisions}
    replanned = {node_id: ("devices",) for node_id, plan in planned.items() if plan.upsert or plan.delete}
    await tell_changes(tx, before, quiet, replanned)
    # What faults of the kernel log do to the devices as they are now commits with them.
    failing = [each.claim.node_id for each in decisions if each.claim.state.raised_by_faults]
    if failing:
        await settle_faults(tx, failing, now)


async def _refuse(tx: Transaction, claim: Claim, refused: SecondMachine) -> None:
    stands = DecidedNode(
        node_id=claim.node_id, hardware=refused.hardware, no_schedule_reasons=refused.no_schedule_reasons
    )
    await save_decided(tx, [stands])
    await condition_store.save_conditions(
        tx, [NodeCondition(claim.tenant_id, claim.node_id, condition) for condition in refused.conditions]
    )
    await event_store.write_events(
        tx, [NewEvent(claim.tenant_id, claim.node_id, event.type, event.payload) for event in refused.events]
    )
    await store.mark_failed(tx, claim.node_id, claim.report.hashes, WHY)
