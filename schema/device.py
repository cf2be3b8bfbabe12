"""Devices."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from db.declared.devices import DeviceQuery
from db.tables import DeviceHealthRow, DeviceRow
from schema.allocation import Booking
from schema.arguments import listed
from schema.enums import DeviceClass, HealthSource
from schema.filters import flat
from schema.objects import NodeInterface, RowTyped, UnknownFact
from schema.scalars import JsonValue

if TYPE_CHECKING:
    from schema.compute_node import ComputeNode

LazyComputeNode = Annotated["ComputeNode", strawberry.lazy("schema.compute_node")]


@strawberry.type(description="A fault that keeps a device out of placement.")
class DeviceHealth:
    """A row of device_health."""

    row: ClassVar = DeviceHealthRow

    device_id: strawberry.ID = strawberry.field(description="The device with the fault.")
    source: HealthSource = strawberry.field(description="Who says so.")
    cause: str = strawberry.field(description="What was found, in one word, such as `LinkInactive`.")
    reason: str = strawberry.field(
        description="The type of condition that it amounts to, such as `NvlinkDegraded`; an operator's own words."
    )
    message: str | None = strawberry.field(description="What was found, for people.")
    rule: str | None = strawberry.field(
        description="Id and version of the rules that say so, such as `inventory/1`; null for an operator's word."
    )
    since: datetime = strawberry.field(description="When it was raised.")


@strawberry.type(description="A unit of hardware with a stable id; the bookable ones are atoms.")
class Device(RowTyped, NodeInterface):
    """A row of devices."""

    row: ClassVar = DeviceRow

    node_id: strawberry.ID = strawberry.field(description="The node that has it.")
    device_class: DeviceClass = strawberry.field(name="class", description="What it is.")
    bookable: bool = strawberry.field(description="It is an atom: it can be booked by itself.")
    healthy: bool = strawberry.field(
        description="It is reached, and neither it nor what it is a part of has a fault. Else nobody is given it; "
        "who has it keeps it."
    )
    missing: bool = strawberry.field(
        description="The node no longer reports it, or its pool no longer divides GPUs so, but it is still booked."
    )
    partition_pending: bool = strawberry.field(description="Its MIG mode is about to change.")
    gpu_product: str | None = strawberry.field(description="Normalized product, such as `H100-SXM5-80GB`.")
    gpu_model: str | None = strawberry.field(description="Family, such as `H100`.")
    vram_gib: float | None = strawberry.field(
        name="vramGiB",
        description="Memory in GiB: a compute instance shares that of its GPU instance, a slot that of its GPU.",
    )
    index: int | None = strawberry.field(description="Order in the driver; never a key.")
    pci_bus_id: str | None = strawberry.field(description="Canonical PCI address.")
    numa_node: int | None = strawberry.field(description="NUMA node it is attached to.")
    architecture: str | None = strawberry.field(description="GPU architecture, such as `Hopper`.")
    compute_capability: str | None = strawberry.field(description="CUDA compute capability.")
    driver_version: str | None = strawberry.field(description="Driver version.")
    mig_capable: bool | None = strawberry.field(description="It can be partitioned.")
    nvlink_peers: list[strawberry.ID] = strawberry.field(
        description="GPUs of the node at the other end of its NVLinks."
    )
    fabric_cluster: str | None = strawberry.field(description="Cluster of its multi-node NVLink domain.")
    fabric_clique: str | None = strawberry.field(description="Clique inside the cluster.")
    attributes: JsonValue = strawberry.field(description="Further facts by name, those of its class.")

    node: LazyComputeNode = strawberry.field(description="The node that has it.")
    parent: "Device | None" = strawberry.field(description="The device it is a part of.")
    children: list["Device"] = strawberry.field(
        description="Its parts: the MIG instances or slots of a GPU, the virtual functions of a network port."
    )
    health: list[DeviceHealth] = strawberry.field(
        description="Its faults and those of the device it is a part of, the earliest first."
    )
    bookings: list[Booking] = strawberry.field(description="What holds it, now or later, the earliest first.")
    not_known: list[UnknownFact] = strawberry.field(description="Facts without a value, and why.")


@flat
@strawberry.input(description="Which devices; what is left out asks nothing.")
class DeviceFilter:
    """A filter of `devices`."""

    id: list[strawberry.ID] | None = strawberry.field(default=None, description="Any of these ids.")
    node_id: list[strawberry.ID] | None = strawberry.field(default=None, description="Of any of these nodes.")
    device_class: list[DeviceClass] | None = strawberry.field(
        name="class", default=None, description="Of any of these classes."
    )
    healthy: bool | None = strawberry.field(default=None, description="Healthy, or not.")


def device_query(given: DeviceFilter | None) -> DeviceQuery:
    """Return a filter as the use case takes it."""
    if given is None:
        return DeviceQuery()
    return DeviceQuery(
        ids=listed("filter.id", given.id),
        node_ids=listed("filter.nodeId", given.node_id),
        classes=listed("filter.class", given.device_class),
        healthy=given.healthy,
    )
