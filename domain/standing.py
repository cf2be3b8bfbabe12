"""What is said of a node outside its inventory: from its conditions and what is observed to all that is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain import events
from domain.conditions import Condition, Observed, merge_no_schedule_reasons, transition
from domain.events import PlannedEvent
from domain.ids import NodeId, TenantId
from domain.node import Trust
from domain.pool import PoolClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is stored of a node's conditions, by type (at least of those that are spoken of), and keeps work off it."""

    node_id: NodeId
    tenant_id: TenantId
    trust: Trust
    conditions: Mapping[str, Condition]
    no_schedule_reasons: tuple[str, ...]
    pool_class: PoolClass | None = None
    """What its pool's machines are used as, where that was asked for; None outside any pool."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What to write: the conditions that changed, every NoSchedule reason, and the events that tell it."""

    conditions: tuple[Condition, ...]
    no_schedule_reasons: tuple[str, ...]
    events: tuple[PlannedEvent, ...]


class Statement(Protocol):
    """What one source tells of a node in a report: pressure, or what its daemon sees."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types of conditions that are this source's alone."""

    def observed(self, standing: Standing) -> Sequence[Observed]:
        """Say what it means for a node as it stands, of those types only; nothing where it has no word."""


def take(standing: Standing, statements: Sequence[Statement], now: datetime) -> Changed | None:
    """Decide what a report changes; None when all of it is written already.

    What a tenant says of a machine under its control is recorded, where the source has a word then, and is no reason.
    """
    said = [each for statement in statements for each in statement.observed(standing)]
    return observe(standing, said, now, advisory=standing.trust is Trust.TENANT_CONTROLLED)


def observe(standing: Standing, said: Sequence[Observed], now: datetime, *, advisory: bool = False) -> Changed | None:
    """Decide what observations change; None when all of it is written already.

    Reasons that nothing is said of stay as they are. What is `advisory` is recorded, and is no reason.
    """
    conditions = transition(standing.conditions, said, now, advisory=advisory)
    written = {**standing.conditions, **{condition.type: condition for condition in conditions}}
    owned = [written[each.type] for each in said if each.type in written]
    reasons = merge_no_schedule_reasons(standing.no_schedule_reasons, owned)
    if not conditions and reasons == standing.no_schedule_reasons:
        return None
    return Changed(conditions, reasons, tuple(map(events.condition_changed, conditions)))
