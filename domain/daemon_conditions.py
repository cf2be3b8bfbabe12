"""Conditions that a node's daemon reports: each is exactly what the last status report says (rule 8)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from domain.condition_types import CONDITION_TYPES, ConditionSource
from domain.conditions import ConditionStatus, Observed
from domain.standing import Standing
from domain.told_faults import is_fault_condition

DAEMON_TYPES: Final = tuple(each.name for each in CONDITION_TYPES if each.source is ConditionSource.DAEMON)


@dataclass(frozen=True, slots=True)
class DaemonStatement:
    """All conditions that a report names, as one of its statements."""

    reported: tuple[Observed, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The daemon's types."""
        return DAEMON_TYPES

    def observed(self, _standing: Standing) -> tuple[Observed, ...]:
        """Say of each type what the report says, whatever the node stands at."""
        return daemon_conditions(self.reported)


def daemon_conditions(reported: Iterable[Observed]) -> tuple[Observed, ...]:
    """Say of each type what a report says, and that it is false where the report has no word of it."""
    said = {each.type: each for each in reported}
    return tuple(said.get(kind) or Observed(kind, ConditionStatus.FALSE) for kind in DAEMON_TYPES)


def not_the_daemons(reported: Iterable[Observed]) -> tuple[str, ...]:
    """Return the reported types that are neither a daemon's nor a fault: others decide them, or nobody knows them."""
    return tuple(sorted({each.type for each in reported if not is_fault_condition(each.type)} - {*DAEMON_TYPES}))


def repeated(reported: Sequence[Observed]) -> str | None:
    """Return a type of the daemon's that a report says twice, if there is one."""
    seen: set[str] = set()
    for each in reported:
        if each.type in DAEMON_TYPES and each.type in seen:
            return each.type
        seen.add(each.type)
    return None
