"""What operators keep work off a node by: cordoned, draining, in maintenance (rules 8 and 15)."""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.events import AxisChange, PlannedEvent, axis_changed


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Since when, why and by whose word a node is in maintenance."""

    reason: str | None
    by: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class OperatorAxes:
    """A node's axes that are an operator's alone: no report of its agent changes them.

    `drained` says that it is draining and nothing is held of it.
    """

    cordoned: bool = False
    draining: bool = False
    drained: bool = False
    maintenance: Maintenance | None = None


def cordon(axes: OperatorAxes) -> OperatorAxes:
    """Give it no new work; what it has stays."""
    return replace(axes, cordoned=True)


def uncordon(axes: OperatorAxes) -> OperatorAxes:
    """Give it work again: it is not being emptied either."""
    return replace(axes, cordoned=False, draining=False, drained=False)


def drain(axes: OperatorAxes) -> OperatorAxes:
    """Empty it, which begins with giving it no new work, as in Kubernetes."""
    return replace(axes, cordoned=True, draining=True)


def empty(axes: OperatorAxes, *, is_held: bool) -> OperatorAxes:
    """Note whether anything is held of a node that is being emptied."""
    return replace(axes, drained=axes.draining and not is_held)


def maintain(axes: OperatorAxes, reason: str | None, by: str, now: datetime) -> OperatorAxes:
    """Put it in maintenance; with another reason it goes on, and the new reason is kept with who gave it."""
    known = axes.maintenance
    if known is not None and known.reason == reason:
        return axes
    since = now if known is None else known.since
    return replace(axes, maintenance=Maintenance(reason, by, since))


def end_maintenance(axes: OperatorAxes) -> OperatorAxes:
    """Take it out of maintenance."""
    return replace(axes, maintenance=None)


def axis_events(
    before: OperatorAxes, after: OperatorAxes, *, by: str | None = None, reason: str | None = None
) -> tuple[PlannedEvent, ...]:
    """Tell each axis that changed, with all of them as they are afterwards; `by` is None for what came about by itself.

    `reason` is what was given for it. That a node is not drained any more is no event: who drains it waits for its end.
    """
    changed = {
        AxisChange.CORDONED: after.cordoned and not before.cordoned,
        AxisChange.UNCORDONED: before.cordoned and not after.cordoned,
        AxisChange.DRAINING: after.draining and not before.draining,
        AxisChange.DRAINED: after.drained and not before.drained,
        AxisChange.MAINTENANCE_CHANGED: after.maintenance != before.maintenance,
    }
    axes = {
        "cordoned": after.cordoned,
        "draining": after.draining,
        "drained": after.drained,
        "maintenance": after.maintenance is not None,
    }
    return tuple(axis_changed(kind, axes, by=by, reason=reason) for kind, has_changed in changed.items() if has_changed)
