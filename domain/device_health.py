"""What is wrong with devices: each fault stands for itself, and a device with one leaves placement (rule 10)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from domain.device import Device, DeviceClass
from domain.gpu_findings import REASONS, RULES, Findings
from domain.ids import DeviceId

MESSAGE_LENGTH_MAX: Final = 500
"""A part of the words comes from whoever reports."""


class HealthSource(StrEnum):
    """Who says that something is wrong with a device."""

    XID = "xid"
    INVENTORY = "inventory"
    OPERATOR = "operator"


class HealthEnd(StrEnum):
    """Why a fault is over."""

    CLEARED = "cleared"
    REPLACED = "replaced"
    """Another card is in the device's place."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHealth:
    """A fault that keeps a device out of placement.

    `cause` says what was found, once for each device and source; `reason` is the type of condition it amounts to,
    `rule` the id and version of the rules that say so, where rules did.
    """

    device_id: DeviceId
    source: HealthSource
    cause: str
    reason: str
    message: str | None
    rule: str | None
    since: datetime


@dataclass(frozen=True, slots=True)
class EndedHealth:
    """A fault that is over."""

    health: DeviceHealth
    end: HealthEnd


@dataclass(frozen=True, slots=True)
class HealthPlan:
    """What stands of a node's faults, of that what is to be written, and what is over; each by device and cause."""

    stands: tuple[DeviceHealth, ...] = ()
    write: tuple[DeviceHealth, ...] = ()
    ended: tuple[EndedHealth, ...] = ()


def plan_health(
    current: Iterable[DeviceHealth],
    findings: Mapping[DeviceId, Findings],
    known: Mapping[DeviceId, Device],
    planned: Mapping[DeviceId, Device],
    now: datetime,
) -> HealthPlan:
    """Let the faults that inventory found follow what it finds now, and all of a device end with it.

    A cause that is not among a device's findings stays as it was: silence neither raises nor lifts.
    """
    written = {(row.device_id, row.source, row.cause): row for row in current}
    stands = dict(written)
    ended = [EndedHealth(row, _end(known, planned, row)) for row in written.values() if row.device_id not in planned]
    for device_id, causes in findings.items():
        for cause, message in causes.items():
            key = (device_id, HealthSource.INVENTORY, cause.value)
            row = written.get(key)
            if message is not None:
                stands[key] = DeviceHealth(
                    device_id=device_id,
                    source=HealthSource.INVENTORY,
                    cause=cause.value,
                    reason=REASONS[cause],
                    message=message[:MESSAGE_LENGTH_MAX],
                    rule=RULES,
                    since=row.since if row is not None else now,
                )
            elif row is not None:
                ended.append(EndedHealth(row, HealthEnd.CLEARED))
    over = {(each.health.device_id, each.health.source, each.health.cause) for each in ended}
    left = {key: row for key, row in sorted(stands.items()) if key not in over}
    return HealthPlan(
        stands=tuple(left.values()),
        write=tuple(row for key, row in left.items() if row != written.get(key)),
        ended=tuple(sorted(ended, key=lambda each: (each.health.device_id, each.health.source, each.health.cause))),
    )


def reasons_of(faults: Iterable[DeviceHealth]) -> dict[DeviceId, tuple[str, ...]]:
    """Return the reasons of each device's faults."""
    found: dict[DeviceId, tuple[str, ...]] = {}
    for fault in faults:
        found[fault.device_id] = (*found.get(fault.device_id, ()), fault.reason)
    return found


def quarantine(devices: Mapping[DeviceId, Device], faults: Sequence[DeviceHealth]) -> dict[DeviceId, Device]:
    """Mark the devices with a fault, and all parts of one, as unhealthy."""
    faulty = {row.device_id for row in faults}
    return {
        device.id: replace(device, healthy=False)
        if device.healthy and (device.id in faulty or device.parent_id in faulty)
        else device
        for device in devices.values()
    }


def _end(known: Mapping[DeviceId, Device], planned: Mapping[DeviceId, Device], row: DeviceHealth) -> HealthEnd:
    """Say how a device's fault ends with the device: its place may have another card now."""
    gone = known.get(row.device_id)
    place = gone.pci_bus_id if gone is not None and gone.device_class is DeviceClass.GPU else None
    taken = place is not None and any(
        device.device_class is DeviceClass.GPU and device.pci_bus_id == place and not device.missing
        for device in planned.values()
    )
    return HealthEnd.REPLACED if taken else HealthEnd.REMOVED
