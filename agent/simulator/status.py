"""What a made-up node says of itself beside its inventory: its kernel log's faults, pressure, conditions, its clock."""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from agent.simulator.gpus import gpu_uuid
from agent.simulator.material import Material
from agent.simulator.node import LogRecord, NodeState, boot_id
from agent.simulator.troubles import Trouble
from agent.wire_status import ReportedCondition, ReportedPressure, ReportedXid, StatusReport, XidKind
from domain.kernel_faults import Fault, statements

SKEW: Final = timedelta(seconds=90)
_AT_REST: Final = ReportedPressure(cpu=3.0, memory=0.0, io=1.0, steal=0.0)
_PRESSURES: Final = {
    Trouble.CPU_PRESSURE: {"cpu": 93.0},
    Trouble.MEMORY_PRESSURE: {"memory": 41.0},
    Trouble.DISK_PRESSURE: {"io": 78.0},
    Trouble.STEAL: {"steal": 34.0},
}
_CONDITIONS: Final = {
    Trouble.REBOOT_REQUIRED: ReportedCondition(
        type="RebootRequired", reason="PackagesUpdated", message="a new kernel is installed"
    ),
    Trouble.FABRIC_MANAGER_DOWN: ReportedCondition(
        type="FabricManagerDown", reason="ServiceFailed", message="nvidia-fabricmanager.service failed"
    ),
}


def status_of(material: Material, state: NodeState, node_id: str, now: datetime) -> StatusReport:
    """Return what the node's agent would report at that time (by the server's clock)."""
    wrong = [trouble for trouble, _ in sorted(state.troubles)]
    levels = {name: level for trouble in wrong for name, level in _PRESSURES.get(trouble, {}).items()}
    return StatusReport(
        node_id=node_id,
        sent_at=now + SKEW if state.has(Trouble.CLOCK_SKEW) else now,
        conditions=tuple(_CONDITIONS[trouble] for trouble in wrong if trouble in _CONDITIONS),
        xids=_faults(material, state),
        pressure=replace(_AT_REST, **levels),
    )


def _faults(material: Material, state: NodeState) -> tuple[ReportedXid, ...]:
    """Return the faults of the present boot; equal ones are one, told as the newest was."""
    boot = boot_id(material, state.boots)
    found: dict[tuple[XidKind, int, str], ReportedXid] = {}
    for record in state.log:
        for fault in statements(record.message):
            if isinstance(fault, Fault):
                told = _told(material, state, record, fault, boot)
                key = (told.kind, told.code, told.address)
                count = found[key].count + 1 if key in found else 1
                found[key] = replace(told, count=count)
    return tuple(found.values())


def _told(material: Material, state: NodeState, record: LogRecord, fault: Fault, boot: str) -> ReportedXid:
    return ReportedXid(
        kind=XidKind[fault.kind.name],
        code=fault.code,
        address=fault.address,
        message=fault.message,
        sequence=str(record.sequence),
        device_id=None if record.slot is None else gpu_uuid(material, state, record.slot),
        boot_id=boot,
        is_fatal=fault.is_fatal,
    )
