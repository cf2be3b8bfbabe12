"""What the faults of a node's kernel log do: quarantines of its devices, and conditions of the node (rules 8 and 10).

It is decided anew from all that holds, so that it may be decided at any time and comes to nothing when all is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from domain import events
from domain.conditions import NAMED_MAX, ConditionStatus, Observed, up_to
from domain.device import Device, DeviceClass, is_place_id
from domain.device_conditions import SEVERAL, device_conditions
from domain.device_health import (
    MESSAGE_LENGTH_MAX,
    DeviceHealth,
    EndedHealth,
    HealthEnd,
    HealthPlan,
    HealthSource,
    quarantine,
)
from domain.events import PlannedEvent
from domain.ids import DeviceId
from domain.last_known import is_lost
from domain.node_fault import FaultEnd, NodeFault
from domain.standing import Changed, Standing, observe
from domain.xid_rules import XidPolicy
from domain.xid_verdict import Scope

_KEEPS_AWAY: Final = frozenset({XidPolicy.NODE_NO_SCHEDULE, XidPolicy.QUARANTINE_AND_DRAIN})
_STAYS_WITHOUT_HARDWARE: Final = frozenset({DeviceClass.GPU_SLOT, DeviceClass.NODE})
"""What may be missing only because the pool does not divide so any more: the hardware works on."""

Key = tuple[DeviceId, HealthSource, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What is written of a node's health: its faults, its devices with theirs, and its conditions.

    `inventory_at` is when the applied inventory was reported, where it is the newest that was; `overrides` what the
    node's pool makes of faults by their codes.
    """

    standing: Standing
    boot_id: str | None
    devices: Mapping[DeviceId, Device]
    health: tuple[DeviceHealth, ...]
    faults: tuple[NodeFault, ...]
    inventory_at: datetime | None
    overrides: Mapping[str, XidPolicy] = field(default_factory=dict)

    @property
    def gpus(self) -> list[Device]:
        """The node's GPUs."""
        return [device for device in self.devices.values() if device.device_class is DeviceClass.GPU]


@dataclass(frozen=True, slots=True)
class HealthChange:
    """What to write: faults, quarantines, devices that turn, and conditions, with the events that tell all of it."""

    faults: tuple[NodeFault, ...]
    health: HealthPlan
    devices: tuple[Device, ...]
    conditions: Changed | None
    events: tuple[PlannedEvent, ...]


def settle(
    state: HealthState,
    now: datetime,
    *,
    write: Iterable[NodeFault] = (),
    told: Iterable[NodeFault] = (),
    health: Sequence[DeviceHealth] | None = None,
) -> HealthChange | None:
    """Decide what a node's faults do; None when all of it is written.

    `write` are faults that differ from those of the state, `told` those of them that are news. `health` is what stands
    of other sources where that changes too.
    """
    known = {(fault.boot_id, fault.key): fault for fault in state.faults}
    after = {**known, **{(fault.boot_id, fault.key): fault for fault in write}}
    after = {name: _found(fault, state, now) for name, fault in after.items()}
    plan = _plan(state, after.values(), state.health if health is None else health)
    devices = _turned(state.devices, plan)
    observed = _observed(after.values(), plan)
    conditions = observe(state.standing, observed, now)
    changed = tuple(fault for name, fault in after.items() if fault != known.get(name))
    if not (changed or plan.write or plan.ended or devices or conditions):
        return None
    is_healthy = {
        **{device.id: device.healthy for device in state.devices.values()},
        **{d.id: d.healthy for d in devices},
    }
    return HealthChange(
        faults=changed,
        health=plan,
        devices=devices,
        conditions=conditions,
        events=(
            *map(events.fault_recorded, told),
            *(
                events.device_health_changed(
                    each.health, healthy=is_healthy.get(each.health.device_id, False), end=each.end
                )
                for each in plan.ended
            ),
            *(events.device_health_changed(fault, healthy=False) for fault in plan.write),
        ),
    )


def end_faults(
    faults: Iterable[NodeFault], which: Callable[[NodeFault], bool], end: FaultEnd, now: datetime
) -> tuple[NodeFault, ...]:
    """Return those of the faults that hold, ended; what is reported of them again is history."""
    return tuple(replace(fault, ended_at=now, end=end) for fault in faults if fault.holds and which(fault))


def concerns(device_id: DeviceId, fault: NodeFault) -> bool:
    """Say whether a fault is one of this device: of the GPU itself, or of this MIG instance of it."""
    if fault.device_id is None:
        return False
    if fault.device_id == device_id:
        return True
    return fault.scope is Scope.INSTANCE and device_id in _instances(fault, (device_id,))


def _found(fault: NodeFault, state: HealthState, now: datetime) -> NodeFault:
    """Find the GPU of a fault that nobody could place before, and end one whose place has another card now."""
    if not fault.holds or fault.scope is Scope.SWITCH:
        return fault
    if fault.device_id is None or _is_renamed(fault.device_id, state):
        is_present = fault.boot_id in {"", state.boot_id}
        found = [gpu.id for gpu in state.gpus if is_present and fault.pci is not None and gpu.pci_bus_id == fault.pci]
        return replace(fault, device_id=found[0]) if len(found) == 1 else fault
    is_known = any(gpu.id == fault.device_id for gpu in state.gpus)
    is_seen_since = state.inventory_at is not None and state.inventory_at > fault.last_at
    is_taken = any(gpu.pci_bus_id == fault.pci and not gpu.missing for gpu in state.gpus)
    # One that is only gone may be back; and a node that lost a GPU is to be rebooted all the same.
    if is_known or fault.is_of_node or not is_seen_since or not is_taken or fault.pci is None:
        return fault
    return replace(fault, ended_at=now, end=FaultEnd.REPLACED)


def _is_renamed(device_id: DeviceId, state: HealthState) -> bool:
    """Say whether a GPU was known by its place alone, and is no more: it has a name now."""
    return is_place_id(device_id, state.standing.node_id) and device_id not in state.devices


def _plan(state: HealthState, faults: Iterable[NodeFault], stands: Sequence[DeviceHealth]) -> HealthPlan:
    written = {_key(row): row for row in state.health}
    wanted = {_key(row): row for row in stands if row.source is not HealthSource.XID}
    for fault in sorted((fault for fault in faults if fault.holds), key=lambda fault: (fault.since, fault.key)):
        for device_id in _targets(fault, state.devices):
            row = DeviceHealth(
                device_id=device_id,
                source=HealthSource.XID,
                cause=fault.cause,
                reason=str(fault.condition),
                message=(fault.message or fault.meaning)[:MESSAGE_LENGTH_MAX],
                rule=fault.rule,
                since=fault.since,
            )
            before = written.get(_key(row))
            # Of several that are one here the first stands, and what is written stays as it is.
            same = before is not None and (before.reason, before.rule) == (row.reason, row.rule)
            wanted.setdefault(_key(row), before if before is not None and same else row)
    replaced = {fault.device_id for fault in faults if fault.end is FaultEnd.REPLACED}
    return HealthPlan(
        stands=tuple(wanted[key] for key in sorted(wanted)),
        write=tuple(wanted[key] for key in sorted(wanted) if wanted[key] != written.get(key)),
        ended=tuple(
            EndedHealth(row, HealthEnd.REPLACED if row.device_id in replaced else HealthEnd.CLEARED)
            for key, row in sorted(written.items())
            if key not in wanted
        ),
    )


def _key(row: DeviceHealth) -> Key:
    return (row.device_id, row.source, row.cause)


def _targets(fault: NodeFault, devices: Mapping[DeviceId, Device]) -> Iterator[DeviceId]:
    """Yield the devices that a fault takes out of placement: the board, or the MIG instance that it is of."""
    if fault.is_of_node or fault.scope is Scope.SWITCH or fault.device_id not in devices or fault.device_id is None:
        return
    if fault.policy is XidPolicy.NODE_ALERT:
        return
    if fault.scope is Scope.INSTANCE:
        yield from _instances(fault, devices)
    else:
        yield fault.device_id


def _instances(fault: NodeFault, among: Iterable[DeviceId]) -> list[DeviceId]:
    whole = f"{fault.device_id}/{fault.mig}"
    return [device_id for device_id in among if f"{device_id}/".startswith(f"{whole}/")]


def _turned(devices: Mapping[DeviceId, Device], plan: HealthPlan) -> tuple[Device, ...]:
    """Return the devices that read otherwise with what changes of their faults."""
    touched = {row.device_id for row in (*plan.write, *(each.health for each in plan.ended))}
    base = {
        device.id: replace(device, healthy=_works(device, devices))
        for device in devices.values()
        if device.id in touched or device.parent_id in touched
    }
    marked = quarantine(base, plan.stands)
    return tuple(device for device in marked.values() if device.healthy != devices[device.id].healthy)


def _works(device: Device, devices: Mapping[DeviceId, Device]) -> bool:
    """Say whether a device is there and can be reached, and so is what it is a part of."""
    if is_lost(device) or (device.missing and device.device_class not in _STAYS_WITHOUT_HARDWARE):
        return False
    whole = devices.get(device.parent_id) if device.parent_id is not None else None
    return whole is None or _works(whole, devices)


def _observed(faults: Iterable[NodeFault], plan: HealthPlan) -> list[Observed]:
    """Say of each type that faults raise, or raised, whether it holds."""
    said = {each.type: each for each in device_conditions(plan.stands, (each.health for each in plan.ended))}
    by_type: dict[str, list[NodeFault]] = {}
    for fault in faults:
        if fault.condition is not None:
            by_type.setdefault(fault.condition, []).append(fault)
    for kind, raising in by_type.items():
        holding = [fault for fault in raising if fault.holds]
        if holding:
            said[kind] = _raised(kind, holding, said.get(kind))
        elif kind not in said:
            keeps_away = any(fault.policy in _KEEPS_AWAY for fault in raising)
            said[kind] = Observed(kind, ConditionStatus.FALSE, no_schedule=keeps_away)
    return list(said.values())


def _raised(kind: str, holding: Sequence[NodeFault], of_devices: Observed | None) -> Observed:
    no_schedule = any(fault.policy in _KEEPS_AWAY for fault in holding)
    if of_devices is not None and of_devices.status is ConditionStatus.TRUE and not no_schedule:
        return of_devices
    causes = {fault.cause for fault in holding}
    named = sorted(f"{fault.device_id or fault.pci or fault.address or 'a GPU'}: {fault.meaning}" for fault in holding)
    reason = causes.pop() if len(causes) == 1 else SEVERAL
    return Observed(kind, ConditionStatus.TRUE, reason, up_to(named, NAMED_MAX), no_schedule=no_schedule)
