"""Writing what was decided of many inventories, set-based and with the events that tell it."""

from collections.abc import Iterator
from dataclasses import dataclass

from db import conditions as condition_store
from db import device_health as health_store
from db import devices as device_store
from db import events as event_store
from db import images as image_store
from db import snapshots as snapshot_store
from db.conditions import NodeCondition
from db.database import Transaction
from db.degradations import tell_turned
from db.device_health import NodeHealth
from db.events import NewEvent
from db.images import NodeImages
from db.nodes import DecidedNode, save_decided
from db.snapshots import NewSnapshot
from domain.devices import Device
from domain.ids import DeviceId, SnapshotId
from domain.inventory import InventoryOutcome
from reconcilers.inventory_claims import Claim
from reconcilers.moves import PlannedNode, follow_moves


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of a claimed node, and the snapshot that it has then."""

    claim: Claim
    outcome: InventoryOutcome
    snapshot_id: SnapshotId


async def save_decisions(tx: Transaction, decisions: list[Decision]) -> None:
    """Write all of it, in a handful of statements."""
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
    await tell_turned(tx, {device_id for decision in decisions for device_id in _turned(decision)})


def _by_novelty(decisions: list[Decision]) -> tuple[list[Device], list[Device]]:
    """Return the planned devices that their nodes did not have, and those that they had otherwise."""
    new: list[Device] = []
    changed: list[Device] = []
    for decision in decisions:
        known = {device.id for device in decision.claim.state.devices}
        for device in decision.outcome.devices.upsert:
            (changed if device.id in known else new).append(device)
    return new, changed


def _turned(decision: Decision) -> Iterator[DeviceId]:
    """Yield the devices that begin or cease to be healthy and there."""
    known = {device.id: device for device in decision.claim.state.devices}
    for device in decision.outcome.devices.upsert:
        before = known.get(device.id)
        if before is not None and (before.healthy, before.missing) != (device.healthy, device.missing):
            yield device.id


def _planned(decision: Decision) -> PlannedNode:
    claim = decision.claim
    return PlannedNode(
        claim.tenant_id, claim.node_id, decision.snapshot_id, claim.state.devices, decision.outcome.devices
    )


def _events(decision: Decision) -> list[NewEvent]:
    claim = decision.claim
    return [
        NewEvent(claim.tenant_id, claim.node_id, event.type, {**event.payload, "snapshotId": decision.snapshot_id})
        for event in decision.outcome.events
    ]
