"""Bookings as planning sees them, each named like its device."""

from collections.abc import Iterable
from datetime import datetime

from domain.booked_atoms import Booked
from domain.ids import BookingId, DeviceId


def booked(device_ids: Iterable[str], begins_at: datetime | None = None) -> tuple[Booked, ...]:
    """Book devices: now, or for later."""
    return tuple(Booked(BookingId(each), DeviceId(each), begins_at) for each in sorted(device_ids))
