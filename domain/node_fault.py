"""A fault that a node's kernel log told, as it is kept: with its verdict, the boot it is of, and how it ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.ids import DeviceId
from domain.kernel_faults import FaultKind
from domain.xid_rules import XidPolicy, XidRemedy
from domain.xid_verdict import Scope


class FaultEnd(StrEnum):
    """Why a fault is over."""

    CLEARED = "cleared"
    """By an operator."""
    RESET = "reset"
    """Its GPU was reset."""
    REBOOTED = "rebooted"
    RECOVERED = "recovered"
    """The driver itself says so: the last value of Xid 154 is 0."""
    REPLACED = "replaced"
    """Its GPU is not in the node any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """Equal faults of one boot: `key` tells them from its others.

    `sequence` is the number of the newest record in the kernel log, `device_id` the GPU where it is known which one,
    `mig` its instance. `condition` is the type that it raises until it ends, None for an event; `remedy` what ends it.
    `rule` is the id and version of the rule that says so, `cause` the fault by its code.
    """

    boot_id: str
    key: str
    kind: FaultKind
    code: int
    address: str
    pci: str | None
    device_id: DeviceId | None
    mig: str | None
    sequence: int
    count: int
    message: str
    policy: XidPolicy
    scope: Scope
    rule: str
    cause: str
    caused_by: str | None
    meaning: str
    recommended_action: str | None
    note: str | None
    condition: str | None
    remedy: XidRemedy | None
    since: datetime
    last_at: datetime
    ended_at: datetime | None = None
    end: FaultEnd | None = None

    @property
    def holds(self) -> bool:
        """Whether it raises its condition now."""
        return self.condition is not None and self.ended_at is None

    @property
    def is_of_node(self) -> bool:
        """Whether it concerns the whole node, not one GPU."""
        return self.scope is Scope.NODE
