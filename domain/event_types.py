"""The types of events: what is told by each, and which later one ends what it tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of event, for people: when it is told, what it means for placement, and the event of its end."""

    name: str
    told: str
    effect: str = ""
    ended_by: str = ""


_AS_CONDITION: Final = "as its condition"
_GIVEN_TO_NOBODY: Final = "the device and its parts are given to nobody"

EVENT_TYPES: Final = (
    EventType("node.changed", "fields of a node changed of which no other event tells; `changed` names them"),
    EventType("node.inventory.changed", "a reported set of sections was applied, or noted under a tenant's control"),
    EventType("node.gpu.missing", "a complete enumeration no longer has a GPU", "its atoms are gone"),
    EventType("node.gpu.added", "an enumeration has a GPU that was not there", "its atoms can be booked"),
    EventType("node.mig.layout.changed", "MIG mode or instances of a GPU changed", "other atoms"),
    EventType("node.disk.replaced", "another disk has a disk's name"),
    EventType("node.driver.changed", "the driver's or CUDA's version changed"),
    EventType("node.nic.replaced", "another card has a network port's name"),
    EventType("node.memory.changed", "memory or its modules changed"),
    EventType("node.cpu.changed", "the processors changed"),
    EventType("node.firmware.changed", "the version of a BIOS, a BMC or a VBIOS changed"),
    EventType("node.kernel.changed", "another kernel runs"),
    EventType("node.device.moved", "a device that left one node turned up at another; told on both"),
    EventType("node.condition.changed", "a condition's status, reason or message changed", _AS_CONDITION),
    EventType(
        "device.health.changed",
        "a fault of a device was raised, told anew, or is over (`end`)",
        _GIVEN_TO_NOBODY,
        "the same, with an `end`",
    ),
    EventType(
        "node.fault.recorded",
        "a kernel log told a fault that is news: the first of its kind in its boot, or one that is back",
        "that of its verdict",
    ),
    EventType(
        "allocation.degraded",
        "an atom that an allocation holds turned unhealthy or vanished",
        "none: nothing is released",
        "allocation.recovered",
    ),
    EventType("allocation.recovered", "all that an allocation holds is healthy again"),
    EventType("node.command.changed", "a command was issued, or came a step on"),
    EventType(
        "node.acceptance.started",
        "an attempt began: its checks are on their way as commands",
        "no new work",
        "node.adopted, node.acceptance.failed",
    ),
    EventType("node.acceptance.failed", "a check of an attempt failed", "no new work", "node.acceptance.started"),
    EventType("node.adopted", "an attempt passed, or there was nothing to check"),
    EventType("node.cordoned", "an operator cordoned a node", "no new work", "node.uncordoned"),
    EventType("node.uncordoned", "an operator ended a node's cordon and its draining"),
    EventType("node.draining", "an operator has a node emptied", "no new work", "node.drained, node.uncordoned"),
    EventType("node.drained", "nothing is held of a draining node any more"),
    EventType(
        "node.maintenance.changed",
        "an operator, or a remediation that did not help, put a node into maintenance, or it is out of it",
        "no new work while it is on",
        "the same, with `on` false",
    ),
    EventType(
        "node.remediation.started",
        "a run began: a reboot of the node or a reset of a GPU, within the pool's budget",
        "no new work",
        "node.remediation.succeeded, node.remediation.escalated",
    ),
    EventType("node.remediation.succeeded", "a run ended what it was for"),
    EventType(
        "node.remediation.escalated",
        "a run failed, or two did not help: an operator has to look",
        "no new work: the node is in maintenance",
        "node.maintenance.changed",
    ),
    EventType(
        "pool.remediation.paused",
        "more than a tenth of a pool's nodes turned unhealthy within ten minutes",
        "no node of the pool is taken out for remediation",
        "pool.remediation.resumed",
    ),
    EventType("pool.remediation.resumed", "they are taken out again"),
)
BY_NAME: Final[Mapping[str, EventType]] = {each.name: each for each in EVENT_TYPES}
