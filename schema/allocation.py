"""Allocations: atoms and a share of their host that are held for a time."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import strawberry

from db.declared.capacity import CapacityRow
from db.tables import AllocationRow, BookingRow
from schema.objects import NodeInterface, RowTyped

if TYPE_CHECKING:
    from schema.device import Device

LazyDevice = Annotated["Device", strawberry.lazy("schema.device")]


@strawberry.type(description="A time from its start up to its end.")
class Interval:
    """The bounds of a row's `during`."""

    from_: datetime = strawberry.field(name="from", description="When it begins.")
    to: datetime | None = strawberry.field(description="When it is over; null without an end.")


@strawberry.type(description="Atoms and a share of their host, held by one shard on one node; whole or not at all.")
class Allocation(RowTyped, NodeInterface):
    """A row of allocations."""

    row: ClassVar = AllocationRow

    node_id: strawberry.ID = strawberry.field(description="The node.")
    shard_id: strawberry.ID | None = strawberry.field(description="The shard that holds it.")
    replica_id: strawberry.ID | None = strawberry.field(description="The replica that the shard is a part of.")
    reservation_id: strawberry.ID | None = strawberry.field(description="The reservation that it was made for.")
    memory_gb: int | None = strawberry.field(name="memoryGB", description="Memory of the host, in GB (10^9 bytes).")
    cpu_cores: int | None = strawberry.field(description="Cores of the host.")
    power_w: float | None = strawberry.field(description="Power it draws as declared, in W; null when not declared.")
    degraded: bool = strawberry.field(
        description="One of the atoms it holds is unhealthy; nothing is released by that."
    )
    degraded_reasons: list[str] = strawberry.field(
        description="Why it is degraded: `AtomUnhealthy: ` and the atom's id, for each."
    )
    devices: list[LazyDevice] = strawberry.field(description="The atoms, by id; of an ended one those still there.")

    @strawberry.field(description="How long it holds them.")
    def during(self) -> Interval:
        """Return the same row, read as an interval."""
        return cast("Interval", self)


@strawberry.type(description="An atom that an allocation holds for a time; no other holds it at any moment of it.")
class Booking:
    """A row of bookings."""

    row: ClassVar = BookingRow

    id: strawberry.ID = strawberry.field(description="The booking's id.")
    allocation: Allocation = strawberry.field(description="The allocation.")

    @strawberry.field(description="How long.")
    def during(self) -> Interval:
        """Return the same row, read as an interval."""
        return cast("Interval", self)


@strawberry.type(
    description="Atoms of one class. Each is allocated, reserved or available, and allocatable then; or, unhealthy or "
    "on a node that takes no new work, none of them."
)
class Capacity:
    """A row of counted atoms."""

    row: ClassVar = CapacityRow

    resource: str = strawberry.field(description="The class of device: gpu, gpu.mig, gpu.slot, nic.vf or node.")
    allocatable: int = strawberry.field(description="Those that are held or may be: the sum of the others.")
    allocated: int = strawberry.field(
        description="Those held now, by themselves or together with what they are a part of or consist of."
    )
    reserved: int = strawberry.field(description="Those not held now but later.")
    available: int = strawberry.field(description="Those that can be allocated now without an end.")
