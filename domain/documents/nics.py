"""The `nics` section."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from domain.documents.document import Count, Document, Section


class NicKind(StrEnum):
    """What a network interface is."""

    PHYSICAL = "physical"
    VF = "vf"
    BOND = "bond"
    VLAN = "vlan"
    BRIDGE = "bridge"
    VIRTUAL = "virtual"


class Vf(Document, frozen=True):
    """One SR-IOV virtual function."""

    index: Annotated[Count, Meta(description="Number of the function on its parent.")]
    mac: Annotated[str | None, Meta(description="MAC address, when one is assigned.")] = None
    pci_bus_id: Annotated[str | None, Meta(description="PCI address.")] = None


class RdmaPort(Document, frozen=True):
    """One port of an RDMA device, as configured."""

    port: Annotated[Count, Meta(description="Number of the port, from 1.")]
    guid: Annotated[str | None, Meta(description="Port GUID.")] = None
    link_layer: Annotated[str | None, Meta(description="`InfiniBand` or `Ethernet`.")] = None
    rate_gbps: Annotated[Count | None, Meta(description="Rate in Gbit/s.")] = None


class Rdma(Document, frozen=True):
    """The RDMA device of a network interface."""

    device: Annotated[str, Meta(description="Kernel name, such as `mlx5_0`.")]
    node_guid: Annotated[str | None, Meta(description="Node GUID.")] = None
    ports: Annotated[tuple[RdmaPort, ...], Meta(max_length=64, description="Ports.")] = ()


class Nic(Document, frozen=True):
    """One network interface."""

    name: Annotated[str, Meta(description="Kernel name.")]
    mac: Annotated[str | None, Meta(description="Present MAC address.")] = None
    permanent_mac: Annotated[str | None, Meta(description="MAC address the hardware was made with.")] = None
    kind: Annotated[NicKind, Meta(description="What the interface is.")] = NicKind.PHYSICAL
    pci_bus_id: Annotated[str | None, Meta(description="Canonical PCI address.")] = None
    driver: Annotated[str | None, Meta(description="Kernel driver.")] = None
    firmware: Annotated[str | None, Meta(description="Firmware version.")] = None
    numa_node: Annotated[Count | None, Meta(description="NUMA node.")] = None
    removable: Annotated[bool | None, Meta(description="On a removable bus such as USB: no identity.")] = None
    vfs: Annotated[tuple[Vf, ...], Meta(max_length=1024, description="SR-IOV virtual functions.")] = ()
    rdma: Annotated[Rdma | None, Meta(description="RDMA device.")] = None


class AttachedFabric(Document, frozen=True):
    """A fabric the node is attached to, as its operator configured it."""

    name: Annotated[str, Meta(description="Name the operator gave the fabric.")]
    adapters: Annotated[tuple[str, ...], Meta(description="RDMA devices on it.")] = ()
    rate_gbps: Annotated[Count | None, Meta(description="Rate of its slowest active port in Gbit/s.")] = None


class NicsSection(Section, frozen=True):
    """Network interfaces that are hardware or stand for it; container links never enter."""

    nics: Annotated[tuple[Nic, ...], Meta(max_length=4096, description="Interfaces, by name.")] = ()
    fabrics: Annotated[tuple[AttachedFabric, ...], Meta(max_length=256, description="Attached fabrics, by name.")] = ()
