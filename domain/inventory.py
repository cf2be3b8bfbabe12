"""Applying a node's reported inventory: one decision, from its state and the report to all that is to be written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from domain import events
from domain.booked_atoms import Booked
from domain.cached_images import CachedImage, ImageCachePlan, plan_image_cache
from domain.changes.gpus import is_complete
from domain.conditions import Condition, Observed, inventory_conditions, merge_no_schedule_reasons, transition
from domain.device import MIB_PER_GIB, is_place_id
from domain.device_conditions import device_conditions
from domain.device_health import DeviceHealth
from domain.device_plan import DevicePlan, Terms, Waits, plan_devices
from domain.devices import Device, DeviceClass
from domain.diff import Change, ChangeType, diff
from domain.digest import inventory_digest
from domain.division import UNPOOLED, Division
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.events import PlannedEvent
from domain.gpu_count import expected_gpus, gpu_count_mismatch
from domain.hardware import Hardware, conflict_observed, next_hardware, seen_identity
from domain.hardware_key import Identity
from domain.ids import DeviceId, NodeId
from domain.inventory_labels import inventory_labels
from domain.jsonvalue import JsonValue
from domain.sections import section_of


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """What is stored of a node.

    `applied` maps section names to the hashes of the last applied set (None: nothing was applied yet), `sections`
    holds its documents. `waits` is what the last plan of its devices waits for, `health` holds their faults, `labels`
    are those from its inventory, `accepted_gpus` is how many GPUs it had when it was last accepted. `raised_by_faults`
    are the types of conditions that faults of its kernel log raise now.
    """

    node_id: NodeId
    no_schedule_reasons: tuple[str, ...]
    applied: Mapping[str, str] | None
    sections: Mapping[str, Section]
    devices: tuple[Device, ...]
    conditions: Mapping[str, Condition]
    identity_key: str
    hardware: Hardware
    waits: Waits = field(default_factory=Waits)
    labels: Mapping[str, str] = field(default_factory=dict)
    images: tuple[CachedImage, ...] = ()
    accepted_gpus: int | None = None
    health: tuple[DeviceHealth, ...] = ()
    raised_by_faults: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the node reported, complete and decoded.

    `shown` is the `hardware_of` the sections, `owners` names the owner of every one of it that has one; `booked` has
    the node's bookings that have not ended; `contested` are those it waits for that another node has still, by
    class (their owners are in `owners` too); `division` and `gpus_in_policy` (how many it expects) are its pool's.

    `key_holders` names other nodes by the trusted hardware keys they have: at least the one that has the reported key.
    `came_back` says that the reported hardware was the node's shortly before what it has now. `identity` is the
    `seen_identity` of the sections, where it was looked for already.
    """

    hashes: Mapping[str, str]
    sections: Mapping[str, Section]
    shown: Sequence[Device]
    owners: Mapping[DeviceId, NodeId]
    booked: Sequence[Booked]
    contested: Mapping[DeviceId, DeviceClass] = field(default_factory=dict)
    division: Division = UNPOOLED
    gpus_in_policy: int | None = None
    key_holders: Mapping[str, NodeId] = field(default_factory=dict)
    came_back: bool = False
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryOutcome:
    """What to write. Without `changed_sections` the set is the applied one, planned anew: it makes no snapshot."""

    digest: str
    changed_sections: tuple[str, ...]
    changes: tuple[Change, ...]
    devices: DevicePlan
    conditions: tuple[Condition, ...]
    no_schedule_reasons: tuple[str, ...]
    hardware: Hardware
    labels: Mapping[str, str]
    events: tuple[PlannedEvent, ...]
    images: ImageCachePlan = field(default_factory=ImageCachePlan)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Everything is as it was written: nothing is to do."""


def apply_report(state: NodeState, report: Report, now: datetime) -> InventoryOutcome | Unchanged:
    """Decide what the report changes. Applying the same report to what was written of it is Unchanged."""
    is_new_set = state.applied is None or dict(state.applied) != dict(report.hashes)
    changes = _changes(state, report.sections) if is_new_set and state.applied is not None else ()
    seen = report.identity or seen_identity(state.hardware, report.sections)
    hardware = next_hardware(state.hardware, seen, report.key_holders, state.identity_key, report.sections)
    owners = _owners(state.node_id, report, hardware)
    terms = Terms(
        now=now,
        division=report.division,
        owners=owners,
        booked=report.booked,
        contested=report.contested,
        health=state.health,
    )
    plan = plan_devices(state.node_id, state.devices, report.shown, report.sections, terms)
    said = _said(state, report, plan, hardware)
    conditions = transition(state.conditions, said, now)
    written = {**state.conditions, **{condition.type: condition for condition in conditions}}
    owned = [written[each.type] for each in said if each.type in written]
    reasons = merge_no_schedule_reasons(state.no_schedule_reasons, owned)
    labels = inventory_labels(state.labels, report.sections, _planned(state.devices, plan))
    images = plan_image_cache(state.images, report.sections)
    stands = (state.hardware, state.no_schedule_reasons, state.waits, dict(state.labels))
    is_as_written = (hardware, reasons, plan.waits, labels) == stands
    if not is_new_set and not (plan.changes_anything or conditions or images) and is_as_written:
        return Unchanged()
    digest = inventory_digest(report.hashes)
    changed_sections = _changed_names(state.applied or {}, report.hashes)
    set_events = [events.inventory_changed(digest, changed_sections, changes)] if is_new_set else []
    return InventoryOutcome(
        digest=digest,
        changed_sections=changed_sections,
        changes=changes,
        devices=plan,
        conditions=conditions,
        no_schedule_reasons=reasons,
        hardware=hardware,
        labels=labels,
        events=(
            *set_events,
            *map(events.hardware_changed, changes),
            *_health_events(state.devices, plan),
            *map(events.condition_changed, conditions),
        ),
        images=images,
    )


def advisory_report(state: NodeState, report: Report) -> InventoryOutcome | Unchanged:
    """Decide what a report under a tenant's control changes: its history, and nothing else (rule 9)."""
    if state.applied is not None and dict(state.applied) == dict(report.hashes):
        return Unchanged()
    digest = inventory_digest(report.hashes)
    changed_sections = _changed_names(state.applied or {}, report.hashes)
    changes = diff(state.sections, report.sections) if state.applied is not None else ()
    return InventoryOutcome(
        digest=digest,
        changed_sections=changed_sections,
        changes=changes,
        devices=DevicePlan((), (), (), state.waits),
        conditions=(),
        no_schedule_reasons=state.no_schedule_reasons,
        hardware=state.hardware,
        labels=state.labels,
        events=(events.inventory_changed(digest, changed_sections, changes, advisory=True),),
    )


def _said(state: NodeState, report: Report, plan: DevicePlan, hardware: Hardware) -> tuple[Observed, ...]:
    """Return what the report says of the node's conditions."""
    contested = conflict_observed(hardware, report.key_holders)
    expected = expected_gpus(report.gpus_in_policy, state.accepted_gpus)
    of_devices = device_conditions(plan.health.stands, (each.health for each in plan.health.ended))
    return (
        *inventory_conditions(report.sections, plan.conflicts, contested),
        *gpu_count_mismatch(section_of(report.sections, GpusSection), expected),
        # What a fault of the kernel log raises too is settled with all that it does (`domain.fault_effects`).
        *(each for each in of_devices if each.type not in state.raised_by_faults),
    )


def _health_events(current: Iterable[Device], plan: DevicePlan) -> Iterator[PlannedEvent]:
    healthy = {device.id for device in _planned(current, plan) if device.healthy}
    for ended in plan.health.ended:
        is_healthy = ended.health.device_id in healthy
        yield events.device_health_changed(ended.health, healthy=is_healthy, end=ended.end)
    for fault in plan.health.write:
        yield events.device_health_changed(fault, healthy=False)


def _owners(node_id: NodeId, report: Report, hardware: Hardware) -> Mapping[DeviceId, NodeId]:
    """Return who owns the reported devices; what nobody owns yet is the holder's whose hardware this is."""
    holder = report.key_holders.get(hardware.key or "") if hardware.conflict else None
    if holder is None:
        return report.owners
    theirs = {device.id: holder for device in report.shown if not is_place_id(device.id, node_id)}
    return {**theirs, **report.owners}


def _planned(current: Iterable[Device], plan: DevicePlan) -> list[Device]:
    after = {device.id: device for device in (*current, *plan.upsert)}
    return [device for device in after.values() if device.id not in plan.delete]


def _changed_names(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _changes(state: NodeState, sections: Mapping[str, Section]) -> tuple[Change, ...]:
    """Compare with the last applied set, and GPUs with the last good state when that set did not list them in full.

    Else a GPU that left while the enumeration was cut short would never be told.
    """
    applied = section_of(state.sections, GpusSection)
    if applied is not None and is_complete(applied):
        return diff(state.sections, sections)
    changes = diff({**state.sections, "gpus": _last_good_gpus(state.devices)}, sections)
    # A GPU that the cut list did not show may have been there all the time.
    return tuple(change for change in changes if change.type is not ChangeType.GPU_ADDED)


def _last_good_gpus(devices: Iterable[Device]) -> GpusSection:
    gpus = [device for device in devices if device.device_class is DeviceClass.GPU and not device.missing]
    drivers = {device.driver_version for device in gpus}
    return GpusSection(
        enumeration=Enumeration.COMPLETE,
        driver_version=drivers.pop() if len(drivers) == 1 else None,
        gpus=tuple(
            Gpu(
                uuid=None if is_place_id(device.id, device.node_id) else device.id,
                index=device.index,
                name=_text(device.attributes.get("name")),
                serial=_text(device.attributes.get("serial")),
                part_number=_text(device.attributes.get("partNumber")),
                vbios=_text(device.attributes.get("vbios")),
                pci_bus_id=device.pci_bus_id,
                vram_mib=None if device.vram_gib is None else round(device.vram_gib * MIB_PER_GIB),
            )
            for device in gpus
        ),
    )


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
