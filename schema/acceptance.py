"""Attempts of nodes at acceptance."""

from datetime import datetime
from typing import ClassVar

import strawberry

from db.tables import AcceptanceRow
from domain import acceptance as domain
from schema.enums import AcceptanceCheckState, AcceptanceState


@strawberry.type(description="A check of an attempt.")
class AcceptanceCheck:
    """An entry of acceptance_attempts.checks."""

    document: ClassVar = domain.AcceptanceCheck

    kind: str = strawberry.field(description="The kind of its command, such as `diag.nvml`.")
    command_id: strawberry.ID = strawberry.field(description="Its command.")
    state: AcceptanceCheckState = strawberry.field(description="What became of it.")
    reason: str | None = strawberry.field(
        description="Why it failed: `Expired`, `UnsupportedCheck`, `diag.nvml:pcie.link`, `diag.dcgm:failed`, …."
    )


@strawberry.type(description="An attempt of a node to pass its pool's checks.")
class Acceptance:
    """A row of acceptance_attempts."""

    row: ClassVar = AcceptanceRow

    attempt: int = strawberry.field(description="Its number among the node's attempts, from 1.")
    state: AcceptanceState = strawberry.field(description="Where it is.")
    checks: list[AcceptanceCheck] = strawberry.field(description="What it checks, fixed as it started.")
    reason: str | None = strawberry.field(
        description="Why it ended like that: `Passed`, `NoChecks`, or the reason of its first check that failed."
    )
    started_at: datetime | None = strawberry.field(
        description="When it started; null while it waits to hear of the node and its inventory."
    )
    finished_at: datetime | None = strawberry.field(description="When it ended.")
