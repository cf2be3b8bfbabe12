"""An operator's word on a device: that its faults are over, or that nobody is to be given it (rule 10)."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from domain.device_health import DeviceHealth, HealthSource
from domain.fault_effects import HealthChange, HealthState, concerns, end_faults, settle
from domain.ids import DeviceId
from domain.node_fault import FaultEnd

QUARANTINED: Final = "Quarantined"


def clear(
    state: HealthState, device_id: DeviceId, now: datetime, *, by: str, reason: str | None
) -> HealthChange | None:
    """End the faults of a device, and of the parts of one, that its kernel log or an operator told.

    What made its node NoSchedule for this device ends with them; what its inventory shows is the inventory's to end.
    """
    parts = {device_id, *(device.id for device in state.devices.values() if device.parent_id == device_id)}
    over = end_faults(state.faults, lambda fault: any(concerns(part, fault) for part in parts), FaultEnd.CLEARED, now)
    stands = tuple(row for row in state.health if row.source is not HealthSource.OPERATOR or row.device_id not in parts)
    return settle(
        state, now, write=(replace(fault, note=_noted(fault.note, by, reason)) for fault in over), health=stands
    )


def clear_node(state: HealthState, now: datetime, *, by: str, reason: str | None) -> HealthChange | None:
    """End all faults that a node's kernel log told, also those of GPUs that nobody can name."""
    over = end_faults(state.faults, lambda _: True, FaultEnd.CLEARED, now)
    return settle(state, now, write=(replace(fault, note=_noted(fault.note, by, reason)) for fault in over))


def put_in_quarantine(
    state: HealthState, device_id: DeviceId, now: datetime, *, by: str, reason: str
) -> HealthChange | None:
    """Give a device a fault of the operator's; another reason takes the place of the one before."""
    others = [row for row in state.health if (row.device_id, row.source) != (device_id, HealthSource.OPERATOR)]
    before = next((row for row in state.health if row not in others), None)
    row = DeviceHealth(
        device_id=device_id,
        source=HealthSource.OPERATOR,
        cause=QUARANTINED,
        reason=reason,
        message=f"by {by}",
        rule=None,
        since=before.since if before is not None else now,
    )
    if before is not None and before.reason == reason:
        row = before
    return settle(state, now, health=(*others, row))


def _noted(note: str | None, by: str, reason: str | None) -> str:
    return "; ".join(filter(None, (note, f"cleared by {by}{f': {reason}' if reason else ''}")))
