"""Two machines that report as one node: told once, and then held back, so that no diff tells of it again and again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain import events
from domain.conditions import Condition, merge_no_schedule_reasons, transition
from domain.events import PlannedEvent
from domain.hardware import Hardware, conflict_observed, is_second_machine, with_second_machine
from domain.inventory import NodeState, Report

WHY: Final = (
    "another machine than the one applied last reports as this node: give each its own identity, "
    "then resolve the duplicate identity"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMachine:
    """What to write when the set is another machine's: nothing of the set itself."""

    hardware: Hardware
    conditions: tuple[Condition, ...]
    no_schedule_reasons: tuple[str, ...]
    events: tuple[PlannedEvent, ...]


def second_machine(state: NodeState, report: Report, now: datetime) -> SecondMachine | None:
    """Say what to do with the set when it is not of the machine that the node has; None when it is."""
    if not is_second_machine(state.hardware, report.sections, came_back=report.came_back):
        return None
    hardware = with_second_machine(state.hardware)
    observed = conflict_observed(hardware, {})
    conditions = transition(state.conditions, [observed] if observed else [], now)
    return SecondMachine(
        hardware=hardware,
        conditions=conditions,
        no_schedule_reasons=merge_no_schedule_reasons(state.no_schedule_reasons, conditions),
        events=tuple(map(events.condition_changed, conditions)),
    )
