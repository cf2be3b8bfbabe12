"""Bookings: which devices are held."""

from collections.abc import Sequence
from typing import Final

from db.database import Transaction
from domain.ids import DeviceId, NodeId

_BOOKED: Final = "select device_id from bookings where node_id = any ($1) and during @> now()"


async def booked_devices(tx: Transaction, node_ids: Sequence[NodeId]) -> set[DeviceId]:
    """Return the devices with live bookings on these nodes: those held now; a later booking is not live yet."""
    return {DeviceId(row.device_id) for row in await tx.fetch(_BOOKED, list(node_ids))}
