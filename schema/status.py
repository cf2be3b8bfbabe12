"""Status reports on their way in."""

from datetime import datetime

import strawberry

from domain.conditions import Observed
from resolvers.statuses import GivenStatus
from schema.enums import ConditionStatus
from schema.slots import SlotError


@strawberry.input(description="A condition as a daemon reports it.")
class ReportedConditionInput:
    """A condition."""

    type: str = strawberry.field(description="Such as `RebootRequired`.")
    status: ConditionStatus = strawberry.field(default=ConditionStatus.TRUE, description="Whether it holds.")
    reason: str | None = strawberry.field(default=None, description="Why, in one word.")
    message: str | None = strawberry.field(default=None, description="Why, for people; at most 1,000 characters.")

    def given(self) -> Observed:
        """Return the condition as the use case takes it."""
        return Observed(self.type, self.status, self.reason, self.message)


@strawberry.input(description="What a node says of itself beside its inventory; what is left out stays as it is.")
class StatusInput:
    """One entry of reportStatus."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    sent_at: datetime | None = strawberry.field(
        default=None, description="The time by the node's clock, by which its clock is compared with the server's."
    )
    conditions: list[ReportedConditionInput] | None = strawberry.field(
        default=None, description="All conditions that its daemon sees now: one that is not among them does not hold."
    )
    observed_generation: int | None = strawberry.field(
        default=None, description="The generation of its desired state that its agent has observed."
    )

    def given(self) -> GivenStatus:
        """Return the entry as the use case takes it."""
        conditions = None if self.conditions is None else [each.given() for each in self.conditions]
        return GivenStatus(self.node_id, conditions, self.sent_at, self.observed_generation)


@strawberry.type(description="The answer to one status report.")
class StatusResult:
    """One slot of reportStatus."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    ignored_conditions: list[str] = strawberry.field(
        description="Reported types that were not recorded: another source decides them, or none is known by that name."
    )
    error: SlotError | None = strawberry.field(description="Why the entry was refused; nothing of it is recorded.")
