"""What is stored of a node's hardware identity, and what a report makes of it (rules 7 and 16).

A trusted key is one node's. Who brings a key that another node has gets a conflict instead, until an operator decides:
the other node letting go, or the same report again, changes nothing of that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from domain.conditions import Condition, ConditionStatus, Observed
from domain.documents.document import Section
from domain.fingerprint import fingerprint
from domain.hardware_evidence import evidence_of
from domain.hardware_key import Evidence, Identity, identify
from domain.identity_score import is_another_machine
from domain.ids import NodeId

RECENT_MINUTES: Final = 10
"""Hardware that comes back within this time, with another machine's in between, is a second machine on one identity."""

IDENTITY_SECTIONS: Final = ("system", "nics", "gpus")
"""The sections that say what machine it is."""


class HardwareConflict(StrEnum):
    """Why a key waits for an operator; the reason of the condition."""

    KEY_TAKEN = "HardwareKeyTaken"
    """Another node has this hardware."""
    TWO_MACHINES = "TwoMachines"
    """Two machines take turns in reporting as this node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A node's hardware identity as stored."""

    key: str | None = None
    trusted: bool = False
    conflict: HardwareConflict | None = None
    evidence: tuple[Evidence, ...] = ()
    fingerprint: str | None = None


def seen_identity(known: Hardware, sections: Mapping[str, Section]) -> Identity:
    """Return the identity that the sections show, with what they are silent about as it was."""
    return identify(evidence_of(sections, known.evidence), known.evidence)


def is_second_machine(known: Hardware, sections: Mapping[str, Section], *, came_back: bool) -> bool:
    """Say whether the report is another machine's, which takes turns with the one that the node has.

    `came_back` says that the reported hardware was the node's shortly before what it has now. Hardware that changes
    once is an exchange; once two machines are known, the other one is not taken for the node until an operator decides.
    """
    if not came_back and known.conflict is not HardwareConflict.TWO_MACHINES:
        return False
    return is_another_machine(known.evidence, seen_identity(known, sections).evidence)


def next_hardware(
    known: Hardware,
    seen: Identity,
    holders: Mapping[str, NodeId],
    identity_key: str,
    sections: Mapping[str, Section],
) -> Hardware:
    """Return what is to be stored; `holders` names the other nodes whose trusted keys these are."""
    trusted, conflict = _standing(known, seen, holders)
    return Hardware(
        key=seen.key,
        trusted=trusted,
        conflict=conflict,
        evidence=known.evidence if _said(known.evidence) == _said(seen.evidence) else seen.evidence,
        fingerprint=fingerprint(identity_key, sections) or known.fingerprint,
    )


def with_second_machine(known: Hardware) -> Hardware:
    """Return what is stored once two machines were seen: neither's key is to be trusted."""
    return replace(known, trusted=False, conflict=HardwareConflict.TWO_MACHINES)


def conflict_observed(hardware: Hardware, holders: Mapping[str, NodeId]) -> Observed | None:
    """Say what the conflict is, for a condition; None without one."""
    match hardware.conflict:
        case None:
            return None
        case HardwareConflict.KEY_TAKEN:
            holder = holders.get(hardware.key or "")
            text = f"its hardware is that of {holder}" if holder else "its hardware was another node's when it came"
        case HardwareConflict.TWO_MACHINES:
            text = "two machines report as this node in turns; what the other one reports is not applied"
    return Observed("DuplicateIdentity", ConditionStatus.TRUE, hardware.conflict.value, text)


def is_about_hardware(condition: Condition | None) -> bool:
    """Say whether a condition is of a conflict that only an operator ends."""
    return condition is not None and condition.reason in set(HardwareConflict)


def _standing(known: Hardware, seen: Identity, holders: Mapping[str, NodeId]) -> tuple[bool, HardwareConflict | None]:
    if known.conflict is HardwareConflict.TWO_MACHINES:
        return False, known.conflict
    if seen.key is None or not seen.strong:
        return False, None
    if seen.key == known.key:
        return known.trusted, known.conflict
    return (False, HardwareConflict.KEY_TAKEN) if seen.key in holders else (True, None)


def _said(evidence: Iterable[Evidence]) -> list[tuple[object, ...]]:
    """Return evidence without what it was compared with."""
    return [(each.field, each.value, each.known, each.placeholder) for each in evidence]
