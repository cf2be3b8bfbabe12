"""A node's hardware identity."""

from typing import ClassVar

import strawberry

from domain.hardware import Hardware
from domain.hardware_key import Evidence


@strawberry.type(description="One identifier that a machine's hardware key rests on, or one that it lacks.")
class HardwareEvidence:
    """An entry of nodes.hardware_evidence."""

    document: ClassVar = Evidence

    field: str = strawberry.field(
        description="productUuid, systemSerial, boardSerial, chassisSerial, permanentMac or gpuUuid."
    )
    value: str | None = strawberry.field(description="As the machine reported it.")
    known: bool = strawberry.field(description="The machine reported a value.")
    placeholder: bool = strawberry.field(description="The value is one that many machines have: it identifies nothing.")
    matched: bool | None = strawberry.field(
        description="Equal to what the node had before its hardware last changed; null for its first."
    )


@strawberry.type(description="What machine a node is, whatever runs on it.")
class HardwareKey:
    """The columns of nodes about hardware."""

    document: ClassVar = Hardware

    key: str = strawberry.field(
        description="SHA-256 over product UUID, serial, permanent MACs and GPU UUIDs, placeholders left out."
    )
    trusted: bool = strawberry.field(description="It rests on two independent identifiers, and this node alone has it.")
    evidence: list[HardwareEvidence] = strawberry.field(description="What it rests on, and what it does not.")
