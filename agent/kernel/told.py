"""Faults of the kernel log as they are told to the server."""

from typing import Final

from agent.wire_status import ReportedXid, XidKind
from domain.kernel_faults import FaultKind
from domain.known_faults import KnownFault

_INT_MAX: Final = 2**31 - 1
_KINDS: Final = {
    FaultKind.XID: XidKind.XID,
    FaultKind.SXID: XidKind.SXID,
    FaultKind.FALLEN_OFF: XidKind.FALLEN_OFF,
}


def reported_xid(known: KnownFault, boot_id: str | None) -> ReportedXid:
    """Put a fault as a status report has it."""
    fault = known.fault
    gi = _int(fault.mig.gi if fault.mig else None)
    return ReportedXid(
        kind=_KINDS[fault.kind],
        code=fault.code,
        address=fault.address,
        # U+0000 is kept nowhere.
        message=fault.message.replace("\0", "\N{REPLACEMENT CHARACTER}"),
        sequence=str(known.sequence),
        count=min(known.count, _INT_MAX),
        device_id=known.device_id,
        gi=gi,
        ci=None if gi is None else _int(fault.mig.ci if fault.mig else None),
        caused_by=fault.caused_by or None,
        boot_id=boot_id,
        is_fatal=fault.is_fatal,
    )


def _int(number: int | None) -> int | None:
    """Return a number that GraphQL's Int holds; no instance has one beyond."""
    return number if number is not None and number <= _INT_MAX else None
