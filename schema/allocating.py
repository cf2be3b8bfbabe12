"""Asking for an allocation, and what is answered."""

from datetime import datetime
from typing import cast

import strawberry

from domain.allocation_request import AllocationRequest, DeviceFacts
from domain.ids import DeviceId
from resolvers import allocations, reading
from resolvers.allocations import Given, Placement
from schema.allocation import Allocation
from schema.compute_node import ComputeNode, NodeFilter, node_query
from schema.device import Device
from schema.enums import DeviceClass
from schema.objects import Info


@strawberry.input(description="What a device must be like; what is left out asks nothing.")
class DeviceSelectorInput:
    """Facts of devices."""

    device_class: DeviceClass = strawberry.field(
        name="class", default=DeviceClass.GPU, description="Its class: gpu, gpu.mig, gpu.slot, nic.vf or node."
    )
    gpu_model: str | None = strawberry.field(default=None, description="Family, such as `H100`.")
    gpu_product: str | None = strawberry.field(default=None, description="Product, such as `H100-SXM5-80GB`.")
    vram_gib_min: float | None = strawberry.field(
        name="vramGiBMin", default=None, description="Memory in GiB that it has at least."
    )
    numa_node: int | None = strawberry.field(default=None, description="NUMA node it is attached to.")


@strawberry.input(description="A time from its start up to its end.")
class IntervalInput:
    """Bounds of a time."""

    from_: datetime | None = strawberry.field(
        name="from", default=None, description="When it begins; left out, or passed already, it begins now."
    )
    to: datetime | None = strawberry.field(default=None, description="When it is over; left out, it has no end.")


@strawberry.input(
    description="What a shard asks for: atoms by id, or by count and selector, and a share of the host. "
    "All of it is on one node."
)
class AllocateInput:
    """A request."""

    shard_id: strawberry.ID = strawberry.field(
        description="The shard: it holds one allocation at a time, and the same request again is answered with that."
    )
    replica_id: strawberry.ID | None = strawberry.field(
        default=None, description="The replica that the shard is a part of: it can be released whole."
    )
    reservation_id: strawberry.ID | None = strawberry.field(default=None, description="The reservation it is for.")
    node_id: strawberry.ID | None = strawberry.field(default=None, description="The node it is to be on.")
    filter: NodeFilter | None = strawberry.field(
        default=None, description="The nodes it may be on; without nodeId and deviceIds any node will do."
    )
    device_ids: list[strawberry.ID] | None = strawberry.field(
        default=None, description="These atoms of one node; instead of a count."
    )
    count: int | None = strawberry.field(
        default=None, description="As many atoms that are free; near each other where there is a choice."
    )
    selector: DeviceSelectorInput | None = strawberry.field(
        default=None, description="What the counted atoms must be like; by default GPUs."
    )
    memory_gb: int | None = strawberry.field(
        name="memoryGB", default=None, description="Memory of the host, in GB (10^9 bytes)."
    )
    cpu_cores: int | None = strawberry.field(default=None, description="Cores of the host.")
    power_w: float | None = strawberry.field(default=None, description="Power it will draw, in W.")
    during: IntervalInput | None = strawberry.field(default=None, description="How long; by default from now on.")
    what_if: bool = strawberry.field(default=False, description="Say what would be chosen, and write nothing.")

    def given(self) -> Given:
        """Return the request as the use case takes it."""
        like = self.selector or DeviceSelectorInput()
        facts = DeviceFacts(
            device_class=like.device_class,
            gpu_model=like.gpu_model,
            gpu_product=like.gpu_product,
            vram_gib_min=like.vram_gib_min,
            numa_node=like.numa_node,
        )
        request = AllocationRequest(
            shard_id=self.shard_id,
            replica_id=self.replica_id,
            reservation_id=self.reservation_id,
            device_ids=tuple(DeviceId(device_id) for device_id in self.device_ids or ()),
            count=self.count or 0,
            facts=facts,
            memory_gb=self.memory_gb,
            cpu_cores=self.cpu_cores,
            power_w=self.power_w,
            start=self.during.from_ if self.during else None,
            end=self.during.to if self.during else None,
        )
        query = node_query(self.filter) if self.filter else None
        return Given(request, self.node_id, query, self.what_if)


@strawberry.type(description="Where a request was placed, or would be.")
class AllocateResult:
    """A placement."""

    placement: strawberry.Private[Placement]

    @strawberry.field(description="The allocation; null for a what-if.")
    def allocation(self, info: Info) -> Allocation | None:
        """Ask for the allocation."""
        found = self.placement.allocation_id
        return None if found is None else cast("Allocation", reading.allocation(info.context, found))

    @strawberry.field(
        description="It was made by this request; false for a what-if, and when the shard had it already."
    )
    def created(self) -> bool:
        """Say whether something was written."""
        return self.placement.created

    @strawberry.field(description="The node.")
    def node(self, info: Info) -> ComputeNode:
        """Ask for the node."""
        return cast("ComputeNode", reading.node(info.context, self.placement.node_id))

    @strawberry.field(description="The atoms, by id.")
    async def devices(self, info: Info) -> list[Device]:
        """Read the devices."""
        return cast("list[Device]", await allocations.placed_devices(info.context, self.placement))

    @strawberry.field(description="Power it draws as declared, in W; null when not declared.")
    def power_w(self) -> float | None:
        """Return the power."""
        return self.placement.power_w
