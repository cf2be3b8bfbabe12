"""Linking both sides of a move: the node that hardware left, and the node at which it turned up.

What is booked of it for later goes with it: else the same hardware could be booked at both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from db.bookings import MovedDevice, follow_devices
from db.database import Transaction
from db.departures import Departure, note_departures, take_departures
from db.events import NewEvent, write_events
from domain.device import Device
from domain.device_plan import DevicePlan
from domain.ids import DeviceId, NodeId, SnapshotId, TenantId
from domain.moves import Station, arrived, departed, device_moved


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node's devices before a plan, the plan, and the snapshot that stands with it."""

    tenant_id: TenantId
    node_id: NodeId
    snapshot_id: SnapshotId
    before: Sequence[Device]
    plan: DevicePlan


async def follow_moves(tx: Transaction, nodes: Sequence[PlannedNode]) -> None:
    """Note what left, and tell both nodes of what came from another; no tenant is told another's node."""
    await note_departures(
        tx,
        [
            Departure(device_id, node.tenant_id, node.node_id, node.snapshot_id)
            for node in nodes
            for device_id in departed(node.before, node.plan)
        ],
    )
    came = {device_id: node for node in nodes for device_id in arrived(node.before, node.plan)}
    events: list[NewEvent] = []
    moved: list[MovedDevice] = []
    for row in await take_departures(tx, sorted(came)):
        node = came[DeviceId(row.device_id)]
        if row.node_id == node.node_id or row.tenant_id != node.tenant_id:
            continue
        left = Station(NodeId(row.node_id), SnapshotId(row.snapshot_id))
        moved.append(MovedDevice(DeviceId(row.device_id), left.node_id, node.node_id))
        told = device_moved(DeviceId(row.device_id), left, Station(node.node_id, node.snapshot_id))
        events += [NewEvent(node.tenant_id, each, told.type, told.payload) for each in (left.node_id, node.node_id)]
    await follow_devices(tx, moved)
    await write_events(tx, events)
