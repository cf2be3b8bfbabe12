"""What the faults of a node's devices are on the node: one condition for each type, whatever the number (rule 8)."""

from collections.abc import Iterable
from typing import Final

from domain.condition_types import POLICIES, ConditionPolicy
from domain.conditions import NAMED_MAX, ConditionStatus, Observed, up_to
from domain.device_health import DeviceHealth, HealthSource

_TYPES: Final = tuple(kind for kind, policy in POLICIES.items() if policy is ConditionPolicy.DEVICE)
SEVERAL: Final = "SeveralCauses"


def device_conditions(stands: Iterable[DeviceHealth], ended: Iterable[DeviceHealth] = ()) -> tuple[Observed, ...]:
    """Say of each type of device condition whether a device of the node has it; the node itself stays schedulable.

    Those of inventory are always spoken of, others where a fault of theirs stands or has `ended`. What an operator
    quarantines is of no type.
    """
    by_type: dict[str, list[DeviceHealth]] = {kind: [] for kind in _TYPES}
    for fault in ended:
        if fault.source is not HealthSource.OPERATOR:
            by_type.setdefault(fault.reason, [])
    for fault in stands:
        if fault.source is not HealthSource.OPERATOR:
            by_type.setdefault(fault.reason, []).append(fault)
    return tuple(_observed(kind, faults) for kind, faults in by_type.items())


def _observed(kind: str, faults: list[DeviceHealth]) -> Observed:
    if not faults:
        return Observed(kind, ConditionStatus.FALSE, no_schedule=False)
    causes = {fault.cause for fault in faults}
    named = sorted(f"{fault.device_id}: {fault.message or fault.cause}" for fault in faults)
    reason = causes.pop() if len(causes) == 1 else SEVERAL
    return Observed(kind, ConditionStatus.TRUE, reason, up_to(named, NAMED_MAX), no_schedule=False)
