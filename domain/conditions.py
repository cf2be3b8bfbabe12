"""Conditions of a node: typed statements, each with the moment since which it has its status (rule 8)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, assert_never

from domain.condition_types import NO_SCHEDULE
from domain.device_plan import DeviceConflict
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, GpusSection
from domain.gpu_names import UNNAMED_BOARDS, GpuKind, name_of
from domain.sections import section_of

NAMED_MAX: Final = 8
_NOT_NAMED: Final[Mapping[GpuKind, str]] = {
    GpuKind.UNKNOWN: "",
    GpuKind.CUT: " (cut short)",
    GpuKind.PLACEHOLDER: " (names no model: the driver may be older than the board)",
}


class ConditionStatus(StrEnum):
    """Whether the statement holds."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as stored; `no_schedule` says that it keeps work off the node while it is true."""

    type: str
    status: ConditionStatus
    reason: str | None
    message: str | None
    since: datetime
    no_schedule: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """What a source says of a condition now; `no_schedule` where it is not the type alone that decides it."""

    type: str
    status: ConditionStatus
    reason: str | None = None
    message: str | None = None
    no_schedule: bool | None = None


def transition(
    current: Mapping[str, Condition], observed: Iterable[Observed], now: datetime, *, advisory: bool = False
) -> tuple[Condition, ...]:
    """Return the conditions that change, by type; the last word on a type counts.

    `since` moves only with the status. A type that was never written and is false says nothing new. What is `advisory`
    is recorded and keeps no work away.
    """
    changed = []
    for said in {each.type: each for each in observed}.values():
        known = current.get(said.type)
        if known is None and said.status is ConditionStatus.FALSE:
            continue
        since = known.since if known is not None and known.status is said.status else now
        keeps_away = said.type in NO_SCHEDULE if said.no_schedule is None else said.no_schedule
        no_schedule = keeps_away and not advisory
        condition = Condition(said.type, said.status, said.reason, said.message, since, no_schedule)
        if condition != known:
            changed.append(condition)
    return tuple(sorted(changed, key=lambda condition: condition.type))


def merge_no_schedule_reasons(current: Sequence[str], owned: Iterable[Condition]) -> tuple[str, ...]:
    """Add the types that hold and drop those that do not; every entry of another owner stays where it is.

    A condition that is unknown changes nothing: absence is not recovery.
    """
    verdicts = {
        condition.type: condition.no_schedule and condition.status is ConditionStatus.TRUE
        for condition in owned
        if condition.status is not ConditionStatus.UNKNOWN
    }
    kept = [reason for reason in current if verdicts.get(reason, True)]
    added = sorted(reason for reason, holds in verdicts.items() if holds and reason not in kept)
    return (*kept, *added)


def inventory_conditions(
    sections: Mapping[str, Section],
    conflicts: Sequence[DeviceConflict],
    contested: Observed | None = None,
) -> tuple[Observed, ...]:
    """Say what a node's sections and the devices it could not take mean; a section that did not come says nothing.

    `contested` says that the whole hardware is another node's too.
    """
    gpus = section_of(sections, GpusSection)
    said = [] if gpus is None else [_inventory_degraded(gpus), *_gpu_model_unknown(gpus)]
    return (*said, _duplicate_identity(conflicts, contested))


def _inventory_degraded(gpus: GpusSection) -> Observed:
    match gpus.enumeration:
        case Enumeration.COMPLETE:
            return Observed("InventoryDegraded", ConditionStatus.FALSE)
        case Enumeration.INCOMPLETE:
            return Observed("InventoryDegraded", ConditionStatus.TRUE, "EnumerationIncomplete", gpus.reason)
        case Enumeration.UNAVAILABLE:
            return Observed("InventoryDegraded", ConditionStatus.TRUE, "EnumerationUnavailable", gpus.reason)
        case _:
            assert_never(gpus.enumeration)


def _gpu_model_unknown(section: GpusSection) -> list[Observed]:
    """Tell the boards that the table cannot name; a GPU without a name, or one that was not listed, says nothing."""
    found = [(gpu.name, name_of(gpu)) for gpu in section.gpus]
    unknown = Counter((text, name.kind) for text, name in found if name is not None and name.kind in UNNAMED_BOARDS)
    if unknown:
        named = [f"{count} named {text!r}{_NOT_NAMED[kind]}" for (text, kind), count in sorted(unknown.items())]
        message = up_to(named, NAMED_MAX)
        return [Observed("GpuModelUnknown", ConditionStatus.TRUE, "NameNotInTable", message)]
    if section.enumeration is Enumeration.COMPLETE and all(name is not None for _, name in found):
        return [Observed("GpuModelUnknown", ConditionStatus.FALSE)]
    return []


def up_to(named: Sequence[str], count: int) -> str:
    """Join the first of what is named, and say how many more there are."""
    more = [f"and {len(named) - count} more"] if len(named) > count else []
    return "; ".join([*named[:count], *more])


def _duplicate_identity(conflicts: Sequence[DeviceConflict], contested: Observed | None) -> Observed:
    if not conflicts and contested is None:
        return Observed("DuplicateIdentity", ConditionStatus.FALSE)
    named = [f"{conflict.device_id} is a device of {conflict.owner}" for conflict in conflicts]
    devices = up_to(named, NAMED_MAX)
    if contested is None:
        return Observed("DuplicateIdentity", ConditionStatus.TRUE, "DeviceOwnedElsewhere", devices)
    # Of two reasons the one that an operator cannot end by a word stands.
    reason = "DeviceOwnedElsewhere" if conflicts else contested.reason
    return replace(contested, reason=reason, message="; ".join(filter(None, (contested.message, devices))))
