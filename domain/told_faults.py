"""Faults as they come in a status report, read strictly; what a condition `Xid<n>` says is the same in fewer words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.conditions import ConditionStatus
from domain.errors import InvalidInput
from domain.fault_intake import ToldFault
from domain.ids import DeviceId
from domain.kernel_faults import Fault, FaultKind, MigInstance, address_of, statements, with_details
from domain.texts import given_text

REPORTED_MAX: Final = 256
MESSAGE_LENGTH_MAX: Final = 1000
CODE_MAX: Final = 999_999
_INSTANCE_MAX: Final = 2**31 - 1
_COUNT_MAX: Final = 2**31 - 1
_ADDRESS_LENGTH_MAX: Final = 32
_CONDITION: Final = re.compile(r"Xid([1-9]\d{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFault:
    """A fault as an agent gives it: what the driver's line says, and where in the log of which boot it stands."""

    kind: FaultKind
    code: int
    address: str
    message: str
    sequence: int
    count: int = 1
    device_id: str | None = None
    gi: int | None = None
    ci: int | None = None
    caused_by: int | None = None
    boot_id: str | None = None
    is_fatal: bool | None = None


def told_faults(given: Sequence[GivenFault]) -> tuple[ToldFault, ...]:
    """Return the faults; raises InvalidInput that names the place and what would be right."""
    if len(given) > REPORTED_MAX:
        raise InvalidInput(f"xids: {len(given)}; at most {REPORTED_MAX} are taken at once")
    return tuple(_told(f"xids.{place}", each) for place, each in enumerate(given))


def is_fault_condition(kind: str) -> bool:
    """Say whether a type of condition names an Xid."""
    return _CONDITION.fullmatch(kind) is not None


def fault_of_condition(
    kind: str, status: ConditionStatus, message: str | None, device_id: str | None
) -> ToldFault | None:
    """Return the fault that a condition `Xid<n>` tells; None for one that does not hold: silence lifts nothing.

    Without a number of its record it is taken once for each GPU and boot.
    """
    found = _CONDITION.fullmatch(kind)
    if found is None or status is not ConditionStatus.TRUE:
        return None
    code, text = int(found[1]), message or ""
    lines = [each for each in statements(text) if isinstance(each, Fault) and each.code == code]
    fault = (
        lines[0] if lines else with_details(Fault(kind=FaultKind.XID, code=code, address="", pci=None, message=text))
    )
    return ToldFault(fault=fault, sequence=0, device_id=DeviceId(device_id) if device_id else None)


def _told(place: str, given: GivenFault) -> ToldFault:
    for name, value, least, most in (
        ("code", given.code, 0, CODE_MAX),
        ("causedBy", given.caused_by, 1, CODE_MAX),
        ("gi", given.gi, 0, _INSTANCE_MAX),
        ("ci", given.ci, 0, _INSTANCE_MAX),
        ("count", given.count, 1, _COUNT_MAX),
        ("sequence", given.sequence, 0, 2**63 - 1),
    ):
        if value is not None and not least <= value <= most:
            raise InvalidInput(f"{place}.{name}: {value}; from {least} to {most} are taken")
    if given.ci is not None and given.gi is None:
        raise InvalidInput(f"{place}.ci: a compute instance is one of a GPU instance; give gi too")
    _bounded(f"{place}.address", given.address, _ADDRESS_LENGTH_MAX)
    _bounded(f"{place}.message", given.message, MESSAGE_LENGTH_MAX)
    given_text(f"{place}.deviceId", given.device_id)
    given_text(f"{place}.bootId", given.boot_id)
    fault = Fault(
        kind=given.kind,
        code=given.code,
        address=given.address,
        pci=address_of(given.address),
        message=given.message,
        mig=None if given.gi is None else MigInstance(given.gi, given.ci),
        caused_by=given.caused_by,
        is_fatal=given.is_fatal,
    )
    return ToldFault(
        fault=with_details(fault) if given.kind is FaultKind.XID else fault,
        sequence=given.sequence,
        count=given.count,
        device_id=DeviceId(given.device_id) if given.device_id else None,
        boot_id=given.boot_id,
    )


def _bounded(place: str, text: str, most: int) -> None:
    if len(text) > most or "\0" in text:
        raise InvalidInput(f"{place}: at most {most} characters without U+0000 are taken")
