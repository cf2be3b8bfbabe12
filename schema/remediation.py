"""Runs of remediation."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import strawberry

from db.tables import RemediationRunRow
from schema.command import Command
from schema.enums import RemediationState, XidRemedy
from schema.objects import NodeInterface, RowTyped


@dataclass(frozen=True, slots=True)
class _Fault:
    condition: str
    device_id: str | None


@strawberry.type(description="A fault for which a node is remedied.")
class RemediedFault:
    """An entry of remediation_runs.faults."""

    document: ClassVar = _Fault

    condition: str = strawberry.field(description="The condition that it raises, such as `Xid79`.")
    device_id: strawberry.ID | None = strawberry.field(description="The GPU, where it is known which one.")


@strawberry.type(description="A run of remediation: one reboot of a node, or one reset of a GPU, for faults of it.")
class RemediationRun(RowTyped, NodeInterface):
    """A row of remediation_runs."""

    row: ClassVar = RemediationRunRow

    node_id: strawberry.ID = strawberry.field(description="The node.")
    remedy: XidRemedy = strawberry.field(description="What is done.")
    device_id: strawberry.ID | None = strawberry.field(description="The GPU that is reset.")
    faults: list[RemediedFault] = strawberry.field(description="For which faults.")
    attempt: int = strawberry.field(description="From 1, how many runs there were for the same fault within a day.")
    state: RemediationState = strawberry.field(description="Where it is on its way.")
    command: Command | None = strawberry.field(
        description="Its command; null when nothing was to be done, as the node was in another boot already."
    )
    reason: str | None = strawberry.field(description="Why it ended like that, in one word.")
    boot_id: str | None = strawberry.field(description="The boot that it is to end.")
    started_at: datetime = strawberry.field(description="When it began.")
    finished_at: datetime | None = strawberry.field(description="When it ended, however it did.")
    escalated_at: datetime | None = strawberry.field(
        description="When the node was put into maintenance because of it; attempts are counted from there."
    )
