"""The inventory reconciler: claims nodes whose report is complete, decides in `domain`, writes set-based.

Pending is state in the database, so nothing is lost with a process. A batch that fails is done again one node at a
time; a node that fails by itself is recorded with its error, keeps its last good inventory and stops nobody else.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, assert_never

import structlog

from db import conditions as condition_store
from db import device_health as health_store
from db import devices as device_store
from db import events as event_store
from db import hardware as hardware_store
from db import images as image_store
from db import inventory as store
from db import snapshots as snapshot_store
from db.bookings import booked_of_nodes
from db.conditions import NodeCondition
from db.connections import TRANSIENT, Row
from db.database import Database, Transaction
from db.device_health import NodeHealth
from db.devices import DeviceTaken
from db.events import NewEvent
from db.fleet import pools_of_nodes
from db.identifiers import new_id_after
from db.images import NodeImages
from db.inventory import Applied
from db.nodes import DecidedNode, save_decided
from db.snapshots import NewSnapshot
from domain.compute_gpus import without_display_adapters
from domain.device_plan import Waits
from domain.devices import Device, DeviceClass, hardware_of
from domain.digest import inventory_digest
from domain.division import UNPOOLED, Division, division_of
from domain.documents.document import Section
from domain.errors import InvalidSection
from domain.gpu_models import GPU_MODELS_VERSION
from domain.hardware import seen_identity
from domain.ids import DeviceId, NodeId, SnapshotId, TenantId
from domain.inventory import InventoryOutcome, NodeState, Report, Unchanged
from domain.node import Trust
from domain.pool import PoolClass, Sharing
from domain.pool_policy import read_policy
from domain.second_machine import WHY, SecondMachine, second_machine
from domain.sections import decode
from domain.trust import is_advisory, marked, take_report
from reconcilers.loop import Activation, Reconciler
from reconcilers.moves import PlannedNode, follow_moves

BATCH_MAX: Final = 64
LANES: Final = 2
"""Batches at a time while many wait: one is decided while PostgreSQL writes the other."""
PAUSE_SECONDS: Final = 1.0
ERROR_LENGTH_MAX: Final = 2000

_ELSEWHERE: Final = NodeId("another tenant's node")
_log = structlog.get_logger("inventory")


@dataclass(frozen=True, slots=True)
class _Pool:
    division: Division = UNPOOLED
    gpu_count: int | None = None


_NO_POOL: Final = _Pool()


@dataclass(frozen=True, slots=True)
class _Claim:
    node_id: NodeId
    tenant_id: TenantId
    row: Row
    state: NodeState
    report: Report


@dataclass(frozen=True, slots=True)
class _Decision:
    claim: _Claim
    outcome: InventoryOutcome
    snapshot_id: SnapshotId


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

    try:
        async with asyncio.TaskGroup() as group:
            lanes = [group.create_task(lane()) for _ in range(LANES)]
    except ExceptionGroup as failed:
        # Who runs a reconciler tells a moment of the database from a bug by the error itself.
        raise failed.exceptions[0] from failed
    return sum(each.result() for each in lanes)


async def _apply_alone(database: Database, node_id: NodeId, now: Callable[[], datetime]) -> None:
    hashes: dict[str, str] = {}
    try:
        async with database.transaction() as tx:
            rows = await store.claim_pending(tx, 1, node_id)
            if rows:
                hashes = rows[0].reported
                await _apply(tx, rows, now())
    except (DeviceTaken, *TRANSIENT) as reason:
        _log.info("a node waits for the next pass", node_id=node_id, reason=repr(reason))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded on the node and logged
        _log.exception("an inventory cannot be applied", node_id=node_id)
        text = error.message if isinstance(error, InvalidSection) else repr(error)
        async with database.transaction() as tx:
            await store.mark_failed(tx, node_id, hashes, text[:ERROR_LENGTH_MAX])


async def _apply(tx: Transaction, rows: list[Row], now: datetime) -> None:
    decisions: list[_Decision] = []
    standing: list[Applied] = []
    claims = await _load(tx, rows)
    holders = await _key_holders(tx, claims)
    for claim in claims:
        trust = Trust(claim.row.trust)
        controlled = trust is Trust.TENANT_CONTROLLED
        refused = None if controlled else second_machine(claim.state, claim.report, now)
        if refused is not None:
            await _refuse(tx, claim, refused)
            continue
        # The same set planned anew (a conflict ended) keeps its snapshot.
        snapshot_id = claim.row.snapshot_id
        report = replace(claim.report, key_holders=_others(holders, claim))
        outcome = take_report(claim.state, report, trust, claim.row.applied_digest, now)
        noted = controlled
        waits = claim.state.waits
        match outcome:
            case InventoryOutcome():
                waits = outcome.devices.waits
                if outcome.changed_sections:
                    snapshot_id = new_id_after("inv", snapshot_id)
                decisions.append(_Decision(claim, outcome, SnapshotId(snapshot_id)))
                if outcome.hardware.trusted and outcome.hardware.key is not None:
                    # Whoever comes later in the batch with the same key is not the first.
                    holders.setdefault(outcome.hardware.key, (claim.node_id, claim.tenant_id))
            case Unchanged():
                noted = is_advisory(claim.row.applied_digest)
            case _:
                assert_never(outcome)
        digest = marked(inventory_digest(claim.report.hashes), advisory=noted)
        standing.append(Applied(claim.node_id, digest, snapshot_id, waits))
    await _save(tx, decisions)
    await store.mark_applied(tx, standing, GPU_MODELS_VERSION)


async def _refuse(tx: Transaction, claim: _Claim, refused: SecondMachine) -> None:
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


async def _load(tx: Transaction, rows: list[Row]) -> list[_Claim]:
    node_ids = [NodeId(row.node_id) for row in rows]
    wanted = {
        (NodeId(row.node_id), name, sha256)
        for row in rows
        for name, sha256 in [*row.reported.items(), *(row.applied or {}).items()]
    }
    contents = await store.section_contents(tx, sorted(wanted))
    documents = {key: without_display_adapters(decode(key[1], content)) for key, content in contents.items()}

    def sections(node_id: NodeId, hashes: dict[str, str] | None) -> dict[str, Section]:
        return {name: documents[node_id, name, sha256] for name, sha256 in (hashes or {}).items()}

    devices: dict[str, list[Row]] = {}
    for device in await device_store.devices_of_nodes(tx, node_ids):
        devices.setdefault(device.node_id, []).append(device)
    conditions: dict[str, list[Row]] = {}
    for condition in await condition_store.conditions_of_nodes(tx, node_ids):
        conditions.setdefault(condition.node_id, []).append(condition)
    booked = await booked_of_nodes(tx, node_ids)
    images = await image_store.images_of_nodes(tx, node_ids)
    health = await health_store.health_of_nodes(tx, node_ids)
    # In a statement after the claim's, which sees what was committed while the claim waited for its rows.
    pools = {row.node_id: _pool(row) for row in await pools_of_nodes(tx, node_ids)}
    reported = {NodeId(row.node_id): sections(NodeId(row.node_id), row.reported) for row in rows}
    hardware = {row.node_id: hardware_store.hardware_of(row) for row in rows}
    shown = {node_id: hardware_of(node_id, found) for node_id, found in reported.items()}
    claimed = {device.id for found in shown.values() for device in found}
    owned = await device_store.owners_of(tx, sorted(claimed.union(*(row.contested for row in rows))))
    owners = {tenant_id: _owners(owned, tenant_id) for tenant_id in {row.tenant_id for row in rows}}
    return [
        _Claim(
            NodeId(row.node_id),
            TenantId(row.tenant_id),
            row,
            NodeState(
                node_id=NodeId(row.node_id),
                identity_key=row.identity_key,
                no_schedule_reasons=tuple(row.no_schedule_reasons),
                applied=row.applied,
                sections=sections(NodeId(row.node_id), row.applied),
                devices=tuple(device_store.device_of(device) for device in devices.get(row.node_id, [])),
                conditions={each.type: condition_store.condition_of(each) for each in conditions.get(row.node_id, [])},
                hardware=hardware[row.node_id],
                labels=row.inventory_labels,
                waits=Waits(held_by=tuple(row.held_by), contested=tuple(row.contested), due_at=row.due_at),
                images=tuple(images[row.node_id]),
                accepted_gpus=row.accepted_gpus,
                health=tuple(health[row.node_id]),
            ),
            Report(
                hashes=row.reported,
                sections=reported[NodeId(row.node_id)],
                shown=shown[NodeId(row.node_id)],
                owners=owners[row.tenant_id],
                booked=booked[NodeId(row.node_id)],
                contested=_contested(owned, row),
                division=pools.get(row.node_id, _NO_POOL).division,
                gpus_in_policy=pools.get(row.node_id, _NO_POOL).gpu_count,
                came_back=row.came_back,
                identity=seen_identity(hardware[row.node_id], reported[NodeId(row.node_id)]),
            ),
        )
        for row in rows
    ]


async def _key_holders(tx: Transaction, claims: list[_Claim]) -> dict[str, tuple[NodeId, TenantId]]:
    """Return who has the keys that these nodes would have, and keep everybody else from taking them meanwhile."""
    keys = set()
    for claim in claims:
        known, seen = claim.state.hardware, claim.report.identity
        if seen is not None and seen.strong and seen.key is not None and not (known.trusted and known.key == seen.key):
            keys.add(seen.key)
    rows = await hardware_store.lock_holders(tx, keys)
    return {row.hardware_key: (NodeId(row.id), TenantId(row.tenant_id)) for row in rows}


def _others(holders: dict[str, tuple[NodeId, TenantId]], claim: _Claim) -> dict[str, NodeId]:
    """Return the other nodes that have keys, without telling one tenant of another's nodes."""
    return {
        key: node_id if tenant_id == claim.tenant_id else _ELSEWHERE
        for key, (node_id, tenant_id) in holders.items()
        if node_id != claim.node_id
    }


def _owners(rows: list[Row], tenant_id: str) -> dict[DeviceId, NodeId]:
    """Return each device's owner, without telling one tenant of another's nodes."""
    return {DeviceId(row.id): NodeId(row.node_id) if row.tenant_id == tenant_id else _ELSEWHERE for row in rows}


def _contested(owned: list[Row], row: Row) -> dict[DeviceId, DeviceClass]:
    """Return what the node waits for and another one has still."""
    waited_for = set(row.contested)
    return {
        DeviceId(device.id): DeviceClass(device.device_class)
        for device in (owned if waited_for else ())
        if device.id in waited_for and device.node_id != row.node_id
    }


def _pool(row: Row) -> _Pool:
    policy = read_policy(row.policy)
    division = division_of(PoolClass(row.pool_class), Sharing(row.sharing), policy)
    return _Pool(division, policy.expect.gpu_count)


async def _save(tx: Transaction, decisions: list[_Decision]) -> None:
    await snapshot_store.append_snapshots(
        tx,
        [
            NewSnapshot(
                id=decision.snapshot_id,
                tenant_id=decision.claim.tenant_id,
                node_id=decision.claim.node_id,
                digest=decision.outcome.digest,
                sections=decision.claim.report.hashes,
                trust=decision.claim.row.trust,
                received_at=decision.claim.row.reported_at,
            )
            for decision in decisions
            if decision.outcome.changed_sections
        ],
    )
    await device_store.delete_devices(
        tx, [(decision.claim.node_id, device) for decision in decisions for device in decision.outcome.devices.delete]
    )
    new, changed = _by_novelty(decisions)
    await device_store.add_devices(tx, new)
    await device_store.change_devices(tx, changed)
    await health_store.save_health(
        tx,
        [
            NodeHealth(decision.claim.tenant_id, decision.claim.node_id, decision.outcome.devices.health)
            for decision in decisions
        ],
    )
    await follow_moves(tx, [_planned(decision) for decision in decisions])
    await save_decided(
        tx,
        [
            DecidedNode(
                node_id=decision.claim.node_id,
                hardware=decision.outcome.hardware,
                no_schedule_reasons=decision.outcome.no_schedule_reasons,
                inventory_labels=decision.outcome.labels,
            )
            for decision in decisions
        ],
    )
    await image_store.save_images(
        tx,
        [
            NodeImages(decision.claim.tenant_id, decision.claim.node_id, decision.outcome.images)
            for decision in decisions
            if decision.outcome.images
        ],
    )
    await condition_store.save_conditions(
        tx,
        [
            NodeCondition(decision.claim.tenant_id, decision.claim.node_id, condition)
            for decision in decisions
            for condition in decision.outcome.conditions
        ],
    )
    await event_store.write_events(tx, [event for decision in decisions for event in _events(decision)])


def _by_novelty(decisions: list[_Decision]) -> tuple[list[Device], list[Device]]:
    """Return the planned devices that their nodes did not have, and those that they had otherwise."""
    new: list[Device] = []
    changed: list[Device] = []
    for decision in decisions:
        known = {device.id for device in decision.claim.state.devices}
        for device in decision.outcome.devices.upsert:
            (changed if device.id in known else new).append(device)
    return new, changed


def _planned(decision: _Decision) -> PlannedNode:
    claim = decision.claim
    return PlannedNode(
        claim.tenant_id, claim.node_id, decision.snapshot_id, claim.state.devices, decision.outcome.devices
    )


def _events(decision: _Decision) -> list[NewEvent]:
    claim = decision.claim
    return [
        NewEvent(claim.tenant_id, claim.node_id, event.type, {**event.payload, "snapshotId": decision.snapshot_id})
        for event in decision.outcome.events
    ]
