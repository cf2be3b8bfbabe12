"""Faults that kernel logs told, with their verdicts."""

from datetime import datetime
from typing import ClassVar

import strawberry

from db.tables import NodeFaultRow
from schema.enums import FaultEnd, FaultKind, Scope, XidPolicy, XidRemedy
from schema.scalars import BigInt


@strawberry.type(description="A fault that a node's kernel log told; equal ones of one boot are one, with a count.")
class NodeFault:
    """A row of node_faults."""

    row: ClassVar = NodeFaultRow

    kind: FaultKind = strawberry.field(description="Which of the driver's lines told of it.")
    code: int = strawberry.field(description="The number of the Xid or SXid.")
    device_id: strawberry.ID | None = strawberry.field(description="The GPU; null where nobody knows which.")
    pci: str | None = strawberry.field(description="Its PCI address; null where no device can have the one printed.")
    address: str = strawberry.field(description="The PCI address as it was told; empty where it was not.")
    mig: str | None = strawberry.field(description="The MIG instance, such as `gi5/ci0`.")
    boot_id: str = strawberry.field(description="The boot that it is of; empty where the node does not tell it.")
    sequence: BigInt = strawberry.field(description="The number of its newest record in that boot's kernel log.")
    count: BigInt = strawberry.field(description="How often it was seen in that boot.")
    message: str = strawberry.field(description="The driver's words.")
    meaning: str = strawberry.field(description="What the code means.")
    recommended_action: str | None = strawberry.field(description="What people are to do.")
    policy: XidPolicy = strawberry.field(description="What it does to placement.")
    scope: Scope = strawberry.field(description="What it touches.")
    rule: str = strawberry.field(description="Id and version of the rule that says so, such as `xid.79/1`.")
    cause: str = strawberry.field(description="The fault by its code, such as `Xid79`.")
    caused_by: str | None = strawberry.field(description="The fault that it is a consequence of.")
    note: str | None = strawberry.field(description="What was not certain.")
    condition: str | None = strawberry.field(description="The type of condition that it raises; null for an event.")
    remedy: XidRemedy | None = strawberry.field(description="What ends it.")
    since: datetime = strawberry.field(description="When it was first reported, or came back.")
    last_at: datetime = strawberry.field(description="When it was last reported as new.")
    ended_at: datetime | None = strawberry.field(description="When it was over.")
    end: FaultEnd | None = strawberry.field(description="Why it is over.")
