"""Faults as an agent reports them: which are new, and what each is judged to be (rules 10 and 16).

A fault that is reported again changes nothing, whether it holds or ended: the number of its newest record in the kernel
log tells what is new from what is repeated.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from domain.device import fact, is_place_id
from domain.fault_effects import HealthChange, HealthState, settle
from domain.fault_scan import SeenFault
from domain.ids import DeviceId
from domain.kernel_faults import Fault, FaultKind
from domain.node import Trust
from domain.node_fault import FaultEnd, NodeFault
from domain.xid_rules import XidPolicy
from domain.xid_verdict import Circumstances, judge

FAULTS_MAX: Final = 1024
"""Of one boot of a node; beyond them only those are kept that raise something, and of one code they are one."""
_ELSEWHERE: Final = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFault:
    """A fault as an agent tells it; `sequence` is the number of its newest record in the log of that boot."""

    fault: Fault
    sequence: int
    count: int = 1
    device_id: DeviceId | None = None
    boot_id: str | None = None


def record(state: HealthState, reported: Sequence[ToldFault], now: datetime) -> HealthChange | None:
    """Decide what reported faults change of a node; None when nothing. What a tenant's machine tells does nothing."""
    if state.standing.trust is Trust.TENANT_CONTROLLED:
        return None
    write, told = take(state, reported, now)
    return settle(state, now, write=write, told=told)


def take(
    state: HealthState, reported: Sequence[ToldFault], now: datetime
) -> tuple[tuple[NodeFault, ...], tuple[NodeFault, ...]]:
    """Return the faults to write, and those of them that are news; those of another boot than the present are not."""
    rows = {(row.boot_id, row.key): row for row in state.faults}
    write: dict[tuple[str, str], NodeFault] = {}
    told: dict[tuple[str, str], NodeFault] = {}
    for each in reported:
        boot_id = each.boot_id or state.boot_id or ""
        if state.boot_id is not None and boot_id != state.boot_id:
            continue
        key = _key(each)
        placed = _placed(each, state)
        if (boot_id, key) not in rows and len(rows) >= FAULTS_MAX:
            placed = replace(placed, fault=replace(placed.fault, address=_ELSEWHERE, pci=None), device_id=None)
            key = _key(placed)
        name = (boot_id, key)
        before = rows.get(name)
        is_same_gpu = before is None or _is_one_gpu(placed.device_id, before.device_id, state)
        if before is not None and is_same_gpu and placed.sequence <= before.sequence and not _is_refuted(before, state):
            continue
        after = _row(placed, key, boot_id, state, now)
        after = _after(before, after) if before is not None and is_same_gpu else after
        if before is None and not after.holds and len(rows) >= FAULTS_MAX:
            continue
        rows[name] = write[name] = after
        if before is None or not is_same_gpu or _says_otherwise(before, after):
            told[name] = after
    return tuple(write.values()), tuple(told.values())


def _is_one_gpu(told: DeviceId | None, known: DeviceId | None, state: HealthState) -> bool:
    """Say whether two faults in one place are of one GPU: one that was known by its place alone may have a name now."""
    if told is None or known is None or told == known:
        return True
    return is_place_id(known, state.standing.node_id)


def _is_refuted(before: NodeFault, state: HealthState) -> bool:
    """Say whether a reboot ended a fault of the very boot that the node is in again: it was another machine's."""
    return before.end is FaultEnd.REBOOTED and before.boot_id == state.boot_id


def _placed(told: ToldFault, state: HealthState) -> ToldFault:
    """Complete the GPU by its address, or the address by the GPU, where the node's inventory knows it."""
    if told.fault.kind is FaultKind.SXID:
        return replace(told, device_id=None)
    if told.device_id is not None:
        gpu = state.devices.get(told.device_id)
        pci = None if gpu is None else gpu.pci_bus_id
        if told.fault.pci is None and pci is not None:
            return replace(told, fault=replace(told.fault, address=pci, pci=pci))
        return told
    pci = told.fault.pci
    found = [gpu.id for gpu in state.gpus if pci is not None and gpu.pci_bus_id == pci and not gpu.missing]
    return replace(told, device_id=found[0]) if len(found) == 1 else told


def _key(told: ToldFault) -> str:
    """Tell a fault from the others of its boot as it is told, whatever is found of it: two without a place are two."""
    fault = told.fault
    place = fault.place or told.device_id or f"?{told.sequence}/{_digest(fault.message)}"
    unit = fault.nvlink.unit if fault.nvlink is not None else None
    kind = FaultKind.SXID if fault.kind is FaultKind.SXID else FaultKind.XID
    link = fault.link if fault.nvlink is not None or kind is FaultKind.SXID else None
    after = None if fault.caused_by is None else f"after{fault.caused_by}"
    parts = (kind.value, fault.code, place, fault.mig, unit, None if link is None else f"link{link}", after)
    return " ".join(str(part) for part in parts if part is not None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _row(told: ToldFault, key: str, boot_id: str, state: HealthState, now: datetime) -> NodeFault:
    seen = SeenFault(number=0, line=0, fault=told.fault, boot_id=boot_id or None)
    verdict = judge(seen, _circumstances(told, state))
    is_over = verdict.policy is XidPolicy.CLEAR
    return NodeFault(
        boot_id=boot_id,
        key=key,
        kind=told.fault.kind,
        code=told.fault.code,
        address=told.fault.address,
        pci=told.fault.pci,
        device_id=told.device_id,
        mig=None if told.fault.mig is None else str(told.fault.mig),
        sequence=told.sequence,
        count=told.count,
        message=told.fault.message,
        policy=verdict.policy,
        scope=verdict.scope,
        rule=verdict.rule,
        cause=verdict.cause,
        caused_by=verdict.caused_by,
        meaning=verdict.meaning,
        recommended_action=verdict.recommended_action,
        note=verdict.note,
        condition=verdict.condition,
        remedy=verdict.remedy,
        since=now,
        last_at=now,
        ended_at=now if is_over else None,
        end=FaultEnd.RECOVERED if is_over else None,
    )


def _after(before: NodeFault, row: NodeFault) -> NodeFault:
    """Return what a row becomes with a newer record of the same fault.

    What holds goes on with the verdict that it has, also where rules or policies would judge it milder now, or where a
    record was cut before what it says; only a driver's word that it is over ends it.
    """
    count = max(before.count, row.count)
    if before.holds and not row.holds and row.policy is not XidPolicy.CLEAR:
        return replace(before, sequence=row.sequence, count=count, message=row.message, last_at=row.last_at)
    goes_on = before.ended_at is None and before.condition == row.condition
    return replace(
        row,
        device_id=row.device_id or before.device_id,
        count=count,
        since=before.since if goes_on else row.since,
    )


def _circumstances(told: ToldFault, state: HealthState) -> Circumstances:
    gpu = state.devices.get(told.device_id) if told.device_id is not None else None
    drivers = {each.driver_version for each in state.gpus} - {None}
    pending = None if gpu is None else fact(gpu, "health.rowRemap.pending")
    return Circumstances(
        driver_version=gpu.driver_version if gpu is not None else drivers.pop() if len(drivers) == 1 else None,
        remap_pending=pending if isinstance(pending, bool) else None,
        overrides=state.overrides,
    )


def _says_otherwise(before: NodeFault, after: NodeFault) -> bool:
    """Say whether a fault is news and not merely one more of a kind that is known."""
    return (before.holds, before.policy, before.condition) != (after.holds, after.policy, after.condition)
