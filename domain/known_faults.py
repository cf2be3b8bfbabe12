"""The faults of one boot that an agent knows: once each, on their GPUs, however often the log tells of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from domain.documents.gpus import GpusSection
from domain.kernel_faults import RECOVERY_CODE, Fault, FaultKind
from domain.pci import canonical
from domain.sections import gpu_uuid
from domain.xid_rules import XID_RULES, XidClass

FAULTS_MAX: Final = 256
PLACES_MAX: Final = 1024
MESSAGE_LENGTH_MAX: Final = 1000
NOTHING_READ: Final = -(2**63)
_OF_PROGRAMS: Final = frozenset({XidClass.APPLICATION, XidClass.CONSEQUENCE})

Key = tuple[Fault, int | None]
"""What equal faults have in common; two of GPUs that nobody can name are two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFault:
    """Equal faults: the words of the newest, how many there were, and the GPU by its UUID where it is known.

    `sequence` is the number of the newest record, or its microseconds on the log's clock where the log has no numbers.
    """

    fault: Fault
    sequence: int
    count: int = 1
    device_id: str | None = None

    @property
    def key(self) -> Key:
        """Tell it from the others of its boot by what its verdict needs: not by process, words, or value of Xid 154."""
        fault = self.fault
        is_of_switch = fault.kind is FaultKind.SXID
        same = Fault(
            # A GPU that fell off the bus is one fault, in whatever words.
            kind=FaultKind.SXID if is_of_switch else FaultKind.XID,
            code=fault.code,
            address=fault.place,
            pci=fault.pci,
            message="",
            mig=fault.mig,
            caused_by=fault.caused_by,
            link=fault.link if is_of_switch or fault.nvlink is not None else None,
            nvlink=fault.nvlink,
        )
        return same, None if fault.address else self.sequence

    @property
    def is_of_program(self) -> bool:
        """Whether it tells of a program, or only follows from another fault."""
        rule = XID_RULES.by_code.get(self.fault.code) if self.fault.kind is not FaultKind.SXID else None
        return self.fault.caused_by is not None or (rule is not None and rule.xid_class in _OF_PROGRAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFaults:
    """The faults of a boot by key, the one heard of last at the end.

    `read_to` is the place in the log up to which its faults are accounted for, `gpus` the last known UUID by canonical
    PCI address, `gaps` how many times records were lost.
    """

    boot_id: str | None = None
    read_to: int = NOTHING_READ
    gaps: int = 0
    faults: Mapping[Key, KnownFault] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)

    def noted(self, fresh: KnownFault) -> "KnownFaults":
        """Account for what a record tells; a `count` of 0 is a further line of a fault that was counted."""
        key = fresh.key
        before = self.faults.get(key)
        if before is None and fresh.count == 0:
            return self
        # A copy hashes no key anew: in a storm that is what it would cost.
        faults = dict(self.faults)
        faults.pop(key, None)
        faults[key] = fresh if before is None else _joined(before, fresh)
        return replace(self, faults=_bounded(faults), read_to=max(self.read_to, fresh.sequence))

    def placed(self, gpus: Mapping[str, str]) -> "KnownFaults":
        """Learn which GPU is where, and say of faults without one whose they are; what is not listed stays known."""
        merged = _merged(self.gpus, gpus)
        if merged == self.gpus:
            return self
        faults = {
            key: known if known.device_id is not None else replace(known, device_id=_at(known.fault, merged))
            for key, known in self.faults.items()
        }
        return replace(self, gpus=merged, faults=faults)

    def without(self, device_id: str, up_to: int) -> "KnownFaults":
        """Forget a GPU's faults up to a place in the log: there it was reset, and it is well."""
        left = {
            key: known for key, known in self.faults.items() if known.device_id != device_id or known.sequence > up_to
        }
        return replace(self, faults=left)

    def gpu_at(self, fault: Fault) -> str | None:
        """Return the UUID of the GPU that a fault's address is known to be of."""
        return _at(fault, self.gpus)


def places_of(section: GpusSection) -> dict[str, str]:
    """Return the UUIDs of the GPUs by canonical PCI address, of those that have both."""
    named = ((canonical(gpu.pci_bus_id), gpu_uuid(gpu)) for gpu in section.gpus)
    return {pci: uuid for pci, uuid in named if pci is not None and uuid is not None}


def _joined(before: KnownFault, fresh: KnownFault) -> KnownFault:
    if before.device_id is not None and fresh.device_id not in {None, before.device_id}:
        return replace(fresh, count=max(1, fresh.count))  # another card in the same place
    # A change of Xid 154 that was cut before its value does not unsay the last one.
    is_cut = fresh.fault.code == RECOVERY_CODE and fresh.fault.recovery is None
    return replace(
        fresh,
        fault=before.fault if is_cut else fresh.fault,
        count=before.count + fresh.count,
        device_id=fresh.device_id or before.device_id,
    )


def _at(fault: Fault, gpus: Mapping[str, str]) -> str | None:
    # A switch is never the GPU whose address looks alike.
    return None if fault.kind is FaultKind.SXID or fault.pci is None else gpus.get(fault.pci)


def _bounded(faults: dict[Key, KnownFault]) -> dict[Key, KnownFault]:
    """Drop one fault beyond the bound: the oldest of a program, else the oldest."""
    if len(faults) > FAULTS_MAX:
        del faults[next((key for key, known in faults.items() if known.is_of_program), next(iter(faults)))]
    return faults


def _merged(before: Mapping[str, str], now: Mapping[str, str]) -> Mapping[str, str]:
    if all(before.get(pci) == uuid for pci, uuid in now.items()):
        return before
    merged = {**{pci: uuid for pci, uuid in before.items() if pci not in now}, **now}
    return dict(list(merged.items())[-PLACES_MAX:])
