"""Status reports as the agent and the server say them: faults of the kernel log, pressure, conditions.

Source: `reportStatus` in the project's schema.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from agent.wire import SLOT_REFUSAL, Message, SlotError

REPORT_STATUS: Final = f"""mutation ReportStatus($entries: [StatusInput!]!) {{
  reportStatus(entries: $entries) {{ nodeId ignoredConditions generation error {{ ...Refusal }} }}
}}{SLOT_REFUSAL}"""


class XidKind(StrEnum):
    """Which of the driver's lines told of a fault, by the name the graph has for it."""

    XID = "XID"
    SXID = "SXID"
    FALLEN_OFF = "FALLEN_OFF"


class ReportedXid(Message, frozen=True, omit_defaults=True):
    """A fault of the present boot; `message` is what the driver said after the code."""

    kind: XidKind
    code: int
    address: str
    message: str
    sequence: str
    """The number of its newest record; a 64-bit integer travels as text."""
    count: int = 1
    device_id: str | None = None
    gi: int | None = None
    ci: int | None = None
    caused_by: int | None = None
    boot_id: str | None = None
    is_fatal: bool | None = None


class ReportedPressure(Message, frozen=True, omit_defaults=True):
    """Percent; what is not known is left out, what the host does not measure is named as the graph names it."""

    cpu: float | None = None
    memory: float | None = None
    io: float | None = None
    steal: float | None = None
    unsupported: tuple[str, ...] | None = None


class ReportedCondition(Message, frozen=True, omit_defaults=True):
    """A condition that holds."""

    type: str
    reason: str | None = None
    message: str | None = None


class StatusReport(Message, frozen=True, omit_defaults=True):
    """What a node says of itself beside its inventory; what is left out stays as it is."""

    node_id: str
    sent_at: datetime | None = None
    conditions: tuple[ReportedCondition, ...] | None = None
    xids: tuple[ReportedXid, ...] | None = None
    pressure: ReportedPressure | None = None
    observed_generation: int | None = None


class StatusAnswer(Message, frozen=True):
    """The types that were not recorded and the newest generation to observe, or why the report was refused."""

    node_id: str
    ignored_conditions: tuple[str, ...] = ()
    generation: int | None = None
    error: SlotError | None = None
