"""Status reports on their way in."""

from datetime import datetime

import strawberry

from domain.told_faults import GivenFault
from resolvers.statuses import GivenCondition, GivenStatus
from schema.enums import ConditionStatus, FaultKind, Pressure
from schema.scalars import BigInt
from schema.slots import SlotError


@strawberry.input(description="A condition as a daemon reports it.")
class ReportedConditionInput:
    """A condition."""

    type: str = strawberry.field(description="Such as `RebootRequired`.")
    status: ConditionStatus = strawberry.field(default=ConditionStatus.TRUE, description="Whether it holds.")
    reason: str | None = strawberry.field(default=None, description="Why, in one word.")
    message: str | None = strawberry.field(
        default=None,
        description="Why, for people; at most 1,000 characters. Of an Xid the driver's own words.",
    )
    device_id: strawberry.ID | None = strawberry.field(
        default=None, description="The GPU of a condition such as `Xid79`; of others nothing."
    )

    def given(self) -> GivenCondition:
        """Return the condition as the use case takes it."""
        return GivenCondition(self.type, self.status, self.reason, self.message, device_id=self.device_id)


@strawberry.input(description="A fault of a GPU or a switch that the kernel log told.")
class XidInput:
    """A fault."""

    code: int = strawberry.field(description="The number of the Xid or SXid; 79 for a GPU that fell off the bus.")
    address: str = strawberry.field(description="The PCI address as the driver printed it; empty where it did not.")
    message: str = strawberry.field(description="The driver's words after the code; at most 1,000 characters.")
    sequence: BigInt = strawberry.field(
        description="The number of its newest record in the kernel log of its boot: what is not newer is a repetition."
    )
    kind: FaultKind = strawberry.field(default=FaultKind.XID, description="Which of the driver's lines told of it.")
    count: int = strawberry.field(default=1, description="How often it was seen in this boot.")
    device_id: strawberry.ID | None = strawberry.field(
        default=None, description="The GPU, where the agent knows it; else the server looks for the address."
    )
    gi: int | None = strawberry.field(default=None, description="The GPU instance, in MIG mode.")
    ci: int | None = strawberry.field(default=None, description="The compute instance of it.")
    caused_by: int | None = strawberry.field(default=None, description="The code of the Xid that it follows from.")
    boot_id: str | None = strawberry.field(default=None, description="Its boot; left out, the node's present one.")
    is_fatal: bool | None = strawberry.field(default=None, description="What a switch itself calls it.")

    def given(self) -> GivenFault:
        """Return the fault as the use case takes it."""
        return GivenFault(
            kind=self.kind,
            code=self.code,
            address=self.address,
            message=self.message,
            sequence=self.sequence,
            count=self.count,
            device_id=self.device_id,
            gi=self.gi,
            ci=self.ci,
            caused_by=self.caused_by,
            boot_id=self.boot_id,
            is_fatal=self.is_fatal,
        )


@strawberry.input(
    description="What a host's CPUs, memory and disks are short of, in percent; null says that it is not known."
)
class PressureInput:
    """Pressure."""

    cpu: float | None = strawberry.field(default=None, description="PSI's `some avg10` of the CPU.")
    steal: float | None = strawberry.field(
        default=None, description="The part of CPU time that the hypervisor kept since the sample before."
    )
    memory: float | None = strawberry.field(default=None, description="PSI's `some avg10` of memory.")
    io: float | None = strawberry.field(default=None, description="PSI's `some avg10` of disks.")
    unsupported: list[Pressure] | None = strawberry.field(
        default=None, description="What the host does not measure, as without PSI: of that there is no pressure."
    )

    def given(self) -> dict[Pressure, float | None]:
        """Return the pressure as the use case takes it: of what is not measured there is none (rule 11)."""
        none = dict.fromkeys(map(Pressure, self.unsupported or ()), 0.0)
        return {each: none.get(each) if getattr(self, each) is None else getattr(self, each) for each in Pressure}


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
    xids: list[XidInput] | None = strawberry.field(
        default=None,
        description="Faults that its kernel log told in this boot, at most 256. What was told before changes nothing.",
    )
    observed_generation: int | None = strawberry.field(
        default=None, description="The generation of its desired state that its agent has observed."
    )
    pressure: PressureInput | None = strawberry.field(
        default=None, description="The host's pressure now; what is left out of it neither begins nor ends."
    )

    def given(self) -> GivenStatus:
        """Return the entry as the use case takes it."""
        conditions = None if self.conditions is None else [each.given() for each in self.conditions]
        xids = None if self.xids is None else [each.given() for each in self.xids]
        pressure = None if self.pressure is None else self.pressure.given()
        return GivenStatus(self.node_id, conditions, xids, self.sent_at, self.observed_generation, pressure)


@strawberry.type(description="The answer to one status report.")
class StatusResult:
    """One slot of reportStatus."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    ignored_conditions: list[str] = strawberry.field(
        description="Reported types that were not recorded: another source decides them, or none is known by that name."
    )
    generation: int | None = strawberry.field(
        description="The newest generation of the node's desired state, for its agent to observe."
    )
    error: SlotError | None = strawberry.field(description="Why the entry was refused; nothing of it is recorded.")
