"""What a made-up node says of itself beside its inventory: its kernel log's faults, pressure, conditions, its clock."""

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from agent.kernel.told import reported_xid
from agent.simulator.gpus import gpu_uuid
from agent.simulator.material import Material
from agent.simulator.node import NodeState
from agent.simulator.troubles import Trouble
from agent.wire_status import ReportedCondition, ReportedPressure, StatusReport
from domain.kernel_faults import Fault, statements
from domain.known_faults import KnownFault, KnownFaults

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


def status_of(material: Material, state: NodeState, node_id: str, boot: str, now: datetime) -> StatusReport:
    """Return what the node's agent would report in that boot and at that time (by the server's clock)."""
    wrong = [trouble for trouble, _ in sorted(state.troubles)]
    levels = {name: level for trouble in wrong for name, level in _PRESSURES.get(trouble, {}).items()}
    return StatusReport(
        node_id=node_id,
        sent_at=now + SKEW if state.has(Trouble.CLOCK_SKEW) else now,
        conditions=tuple(_CONDITIONS[trouble] for trouble in wrong if trouble in _CONDITIONS),
        xids=tuple(reported_xid(known, boot) for known in known_faults(material, state)),
        pressure=replace(_AT_REST, **levels),
    )


def known_faults(material: Material, state: NodeState) -> tuple[KnownFault, ...]:
    """Return what the node's agent knows of the faults of this boot."""
    known = KnownFaults()
    for record in state.log:
        device_id = None if record.slot is None else gpu_uuid(material, state, record.slot)
        for fault in statements(record.message):
            if isinstance(fault, Fault):
                known = known.noted(KnownFault(fault=fault, sequence=record.sequence, device_id=device_id))
    return tuple(known.faults.values())
