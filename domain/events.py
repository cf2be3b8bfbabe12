"""Events that a decision publishes; they commit with the change they tell (rules 3 and 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.changes.change import Change
from domain.commands import Command
from domain.conditions import Condition
from domain.device_health import DeviceHealth, HealthEnd
from domain.disruption import PoolDisruption
from domain.ids import AllocationId, CommandId, PoolId
from domain.jsonvalue import JsonValue
from domain.node_fault import NodeFault
from domain.remediation_run import Run

INVENTORY_CHANGED: Final = "node.inventory.changed"
CONDITION_CHANGED: Final = "node.condition.changed"
DEVICE_HEALTH_CHANGED: Final = "device.health.changed"
COMMAND_CHANGED: Final = "node.command.changed"
ACCEPTANCE_STARTED: Final = "node.acceptance.started"
ACCEPTANCE_FAILED: Final = "node.acceptance.failed"
NODE_ADOPTED: Final = "node.adopted"
FAULT_RECORDED: Final = "node.fault.recorded"
ALLOCATION_DEGRADED: Final = "allocation.degraded"
ALLOCATION_RECOVERED: Final = "allocation.recovered"
NODE_CHANGED: Final = "node.changed"
REMEDIATION_STARTED: Final = "node.remediation.started"
REMEDIATION_SUCCEEDED: Final = "node.remediation.succeeded"
REMEDIATION_ESCALATED: Final = "node.remediation.escalated"
POOL_PAUSED: Final = "pool.remediation.paused"
POOL_RESUMED: Final = "pool.remediation.resumed"
REMEDIATION: Final = (REMEDIATION_STARTED, REMEDIATION_SUCCEEDED, REMEDIATION_ESCALATED)
POOL_REMEDIATION: Final = (POOL_PAUSED, POOL_RESUMED)


class AxisChange(StrEnum):
    """What became of the axes that operators set; the value is the type of the event."""

    CORDONED = "node.cordoned"
    UNCORDONED = "node.uncordoned"
    DRAINING = "node.draining"
    DRAINED = "node.drained"
    MAINTENANCE_CHANGED = "node.maintenance.changed"


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """An event without its id, tenant, node and time, which the writer adds."""

    type: str
    payload: dict[str, JsonValue]


def inventory_changed(
    digest: str, sections: Sequence[str], changes: Sequence[Change], *, advisory: bool = False
) -> PlannedEvent:
    """Tell that a node's set of sections changed; `snapshotId` is added by who appends the snapshot."""
    payload: dict[str, JsonValue] = {
        "digest": digest,
        "sections": list(sections),
        "advisory": advisory,
        "changes": [{"type": change.type.value, **_change(change)} for change in changes],
    }
    return PlannedEvent(INVENTORY_CHANGED, payload)


def hardware_changed(change: Change) -> PlannedEvent:
    """Tell one change, as an event of its type."""
    return PlannedEvent(change.type.value, _change(change))


def condition_changed(condition: Condition) -> PlannedEvent:
    """Tell a condition's new state."""
    return PlannedEvent(
        CONDITION_CHANGED,
        {
            "condition": condition.type,
            "status": condition.status.value,
            "reason": condition.reason,
            "message": condition.message,
            "noSchedule": condition.no_schedule,
        },
    )


def device_health_changed(fault: DeviceHealth, *, healthy: bool, end: HealthEnd | None = None) -> PlannedEvent:
    """Tell a fault that a device has, or how it ended; `healthy` says how the device reads with it."""
    return PlannedEvent(
        DEVICE_HEALTH_CHANGED,
        {
            "deviceId": fault.device_id,
            "healthy": healthy,
            "source": fault.source.value,
            "cause": fault.cause,
            "reason": fault.reason,
            "message": fault.message,
            "rule": fault.rule,
            "since": fault.since.isoformat(),
            "end": None if end is None else end.value,
        },
    )


def fault_recorded(fault: NodeFault) -> PlannedEvent:
    """Tell a fault of the kernel log that is news, with its verdict."""
    return PlannedEvent(
        FAULT_RECORDED,
        {
            "kind": fault.kind.value,
            "code": fault.code,
            "deviceId": fault.device_id,
            "pci": fault.pci,
            "mig": fault.mig,
            "bootId": fault.boot_id or None,
            "sequence": str(fault.sequence),
            "count": fault.count,
            "message": fault.message,
            "policy": fault.policy.value,
            "scope": fault.scope.value,
            "rule": fault.rule,
            "cause": fault.cause,
            "causedBy": fault.caused_by,
            "meaning": fault.meaning,
            "recommendedAction": fault.recommended_action,
            "note": fault.note,
            "condition": fault.condition,
        },
    )


def allocation_turned(allocation_id: AllocationId, shard_id: str | None, reasons: Sequence[str]) -> PlannedEvent:
    """Tell that what an allocation holds is not all healthy, or is again."""
    return PlannedEvent(
        ALLOCATION_DEGRADED if reasons else ALLOCATION_RECOVERED,
        {"allocationId": allocation_id, "shardId": shard_id, "degradedReasons": list(reasons)},
    )


def command_changed(command: Command, *, by: str | None = None) -> PlannedEvent:
    """Tell a command's new state, and who brought it about; None for time alone."""
    return PlannedEvent(
        COMMAND_CHANGED,
        {
            "commandId": command.id,
            "kind": command.kind,
            "sequence": command.sequence,
            "state": command.state.value,
            "reason": command.reason,
            "message": command.message,
            "by": by,
        },
    )


def axis_changed(
    change: AxisChange, axes: Mapping[str, bool], *, reason: str | None = None, by: str | None = None
) -> PlannedEvent:
    """Tell an axis that an operator set, with all of them as they are then."""
    return PlannedEvent(change.value, {**axes, "reason": reason, "by": by})


def acceptance_started(attempt: int, commands: Mapping[str, CommandId]) -> PlannedEvent:
    """Tell that a node's checks run, each kind with its command."""
    payload: dict[str, JsonValue] = {
        "attempt": attempt,
        "checks": list(commands),
        "commandIds": list(commands.values()),
    }
    return PlannedEvent(ACCEPTANCE_STARTED, payload)


def acceptance_failed(attempt: int, reason: str | None, command_id: CommandId) -> PlannedEvent:
    """Tell the first check that a node did not pass."""
    return PlannedEvent(ACCEPTANCE_FAILED, {"attempt": attempt, "reason": reason, "commandId": command_id})


def node_adopted(reason: str, attempt: int | None = None) -> PlannedEvent:
    """Tell that a node is adopted; without an attempt it was so when it joined."""
    return PlannedEvent(NODE_ADOPTED, {"attempt": attempt, "reason": reason})


def remediation(kind: str, run: Run, reason: str | None = None) -> PlannedEvent:
    """Tell how far a run of remediation is, or that its node is left to an operator for a reason."""
    return PlannedEvent(
        kind,
        {
            "runId": run.id,
            "remedy": run.remedy.value,
            "deviceId": run.device_id,
            "causes": sorted({condition for condition, _ in run.faults}),
            "attempt": run.attempt,
            "commandId": run.command_id,
            "reason": reason or run.reason,
        },
    )


def pool_remediation(pool_id: PoolId, pool: PoolDisruption) -> PlannedEvent:
    """Tell that no node of a pool is taken out any more, or that they are again, with what the breaker saw."""
    kind = POOL_PAUSED if pool.is_tripped else POOL_RESUMED
    return PlannedEvent(kind, {"poolId": pool_id, "nodes": pool.size, "turnedUnhealthy": pool.turned})


def node_changed(names: Sequence[str]) -> PlannedEvent:
    """Tell that fields of a node changed of which no other event tells, by their names in the graph."""
    return PlannedEvent(NODE_CHANGED, {"changed": sorted(names)})


def _change(change: Change) -> dict[str, JsonValue]:
    return {"deviceId": change.device_id, "before": change.before, "after": change.after}
