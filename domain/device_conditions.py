"""What the faults of a node's devices are on the node: one condition for each type, whatever the number (rule 8)."""

from collections.abc import Iterable
from typing import Final

from domain.conditions import NAMED_MAX, POLICIES, ConditionPolicy, ConditionStatus, Observed, up_to
from domain.device_health import DeviceHealth

_TYPES: Final = tuple(kind for kind, policy in POLICIES.items() if policy is ConditionPolicy.DEVICE)
SEVERAL: Final = "SeveralCauses"


def device_conditions(faults: Iterable[DeviceHealth]) -> tuple[Observed, ...]:
    """Say of each type of device condition whether a device of the node has it; the node itself stays schedulable."""
    by_type: dict[str, list[DeviceHealth]] = {}
    for fault in faults:
        by_type.setdefault(fault.reason, []).append(fault)
    return tuple(_observed(kind, by_type.get(kind, [])) for kind in _TYPES)


def _observed(kind: str, faults: list[DeviceHealth]) -> Observed:
    if not faults:
        return Observed(kind, ConditionStatus.FALSE)
    causes = {fault.cause for fault in faults}
    named = sorted(f"{fault.device_id}: {fault.message or fault.cause}" for fault in faults)
    reason = causes.pop() if len(causes) == 1 else SEVERAL
    return Observed(kind, ConditionStatus.TRUE, reason, up_to(named, NAMED_MAX))
