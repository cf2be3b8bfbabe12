"""What an operator's word on a duplicate identity means for the nodes that contend (rule 7)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from domain import events
from domain.conditions import Condition, ConditionStatus, Observed, merge_no_schedule_reasons, transition
from domain.errors import Conflict
from domain.events import PlannedEvent
from domain.hardware import Hardware, HardwareConflict, conflict_observed, is_about_hardware
from domain.hardware_key import identify
from domain.ids import NodeId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A node that contends for a hardware key, as stored."""

    node_id: NodeId
    tenant_id: TenantId
    hardware: Hardware
    conditions: Mapping[str, Condition]
    no_schedule_reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What to write of a contender; with `lets_go` its devices are for the other to take."""

    node: Contender
    hardware: Hardware
    conditions: tuple[Condition, ...]
    no_schedule_reasons: tuple[str, ...]
    events: tuple[PlannedEvent, ...]
    lets_go: bool = False


def settle(node: Contender, holder: Contender | None, *, keep: bool, now: datetime) -> tuple[Settled, ...]:
    """Decide for a node whose key waits; `holder` is the other node that has the key, if one has it.

    With `keep` the node gets the key, and the holder is the one that waits from now on. Without, the node is done
    waiting and its key is never trusted: of two machines in turns, the one that reports next is the node's. Raises
    Conflict when nothing waits, or when the holder is another tenant's.
    """
    known = node.hardware
    strong = identify(known.evidence).strong
    if known.conflict is None and not (keep and strong and not known.trusted):
        raise Conflict(
            f"{node.node_id}: no hardware key waits for a decision; a DuplicateIdentity about single devices ends when "
            "their owner lets go of them"
        )
    if not keep:
        two_machines = known.conflict is HardwareConflict.TWO_MACHINES
        left = Hardware(fingerprint=known.fingerprint) if two_machines else replace(known, conflict=None)
        return (_settled(node, left, _ended(node), now),)
    if holder is not None and holder.tenant_id != node.tenant_id:
        raise Conflict(f"{node.node_id}: another tenant's node has this hardware; who runs both decides")
    kept = _settled(node, replace(known, trusted=strong, conflict=None), _ended(node), now)
    if holder is None or not strong:
        return (kept,)
    lost = replace(holder.hardware, trusted=False, conflict=HardwareConflict.KEY_TAKEN)
    said = conflict_observed(lost, {lost.key or "": node.node_id})
    # The one that lets go is written first: a key has one node at any time.
    return (replace(_settled(holder, lost, said, now), lets_go=True), kept)


def _ended(node: Contender) -> Observed | None:
    """End the condition when the key is all that it is about."""
    about_hardware = is_about_hardware(node.conditions.get("DuplicateIdentity"))
    return Observed("DuplicateIdentity", ConditionStatus.FALSE) if about_hardware else None


def _settled(node: Contender, hardware: Hardware, said: Observed | None, now: datetime) -> Settled:
    conditions = transition(node.conditions, [said] if said else [], now)
    return Settled(
        node=node,
        hardware=hardware,
        conditions=conditions,
        no_schedule_reasons=merge_no_schedule_reasons(node.no_schedule_reasons, conditions),
        events=tuple(map(events.condition_changed, conditions)),
    )
