"""The `gpus` section: the driver's view of the GPUs, with how far the enumeration got."""

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, field

from domain.documents.document import Count, Document, Section


class Enumeration(StrEnum):
    """How far counting the GPUs got. Only a complete enumeration can make a known GPU missing."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNAVAILABLE = "unavailable"


class Mode(Document, frozen=True):
    """A setting that takes effect at the next reset."""

    current: Annotated[bool | None, Meta(description="In effect now.")] = None
    pending: Annotated[bool | None, Meta(description="In effect after the next reset.")] = None


class MigInstance(Document, frozen=True):
    """One MIG device: a compute instance inside a GPU instance, whose memory its siblings share."""

    gi: Annotated[Count, Meta(description="GPU instance id; neither dense nor stable.")]
    ci: Annotated[Count, Meta(description="Compute instance id inside the GPU instance.")]
    uuid: Annotated[str | None, Meta(description="MIG UUID; opaque.")] = None
    profile: Annotated[str | None, Meta(description="Profile as NVML names it, such as `3g.40gb`.")] = None
    memory_mib: Annotated[Count | None, Meta(description="Memory of the GPU instance in MiB.")] = None


class NvLink(Document, frozen=True):
    """One NVLink of a GPU."""

    link: Annotated[Count, Meta(description="Number of the link.")]
    state: Annotated[str | None, Meta(description="`active` or `inactive`.")] = None
    remote: Annotated[str | None, Meta(description="PCI bus id of the device at the other end.")] = None


class Fabric(Document, frozen=True):
    """The GPU's registration with the NVLink fabric."""

    state: Annotated[
        str | None, Meta(description="`completed`, `in_progress` or `not_started`; absent on parts without a fabric.")
    ] = None
    status: Annotated[str | None, Meta(description="`success`, or what the registration failed with.")] = None
    cluster_uuid: Annotated[str | None, Meta(description="Cluster; absent without a multi-node domain.")] = None
    clique_id: Annotated[Count | None, Meta(description="Clique; compares only inside one cluster.")] = None
    health: Annotated[str | None, Meta(description="Health summary: `healthy`, `unhealthy` or `limited_capacity`.")] = (
        None
    )
    health_issues: Annotated[
        tuple[str, ...],
        Meta(description="What the health mask reports, such as `route_unhealthy`; bits without a name as `0x…`."),
    ] = ()


class RowRemap(Document, frozen=True):
    """Remapped memory rows (Ampere and later)."""

    correctable: Annotated[Count | None, Meta(description="Rows remapped for correctable errors.")] = None
    uncorrectable: Annotated[Count | None, Meta(description="Rows remapped for uncorrectable errors.")] = None
    pending: Annotated[bool | None, Meta(description="A remap waits for a reset.")] = None
    failure: Annotated[bool | None, Meta(description="A remap failed: no spare row was left.")] = None


class RetiredPages(Document, frozen=True):
    """Retired memory pages (before Ampere)."""

    sbe: Annotated[Count | None, Meta(description="Pages retired for single-bit errors.")] = None
    dbe: Annotated[Count | None, Meta(description="Pages retired for double-bit errors.")] = None
    pending: Annotated[bool | None, Meta(description="A retirement waits for a reset.")] = None


class EccUncorrectable(Document, frozen=True):
    """Uncorrectable ECC errors."""

    volatile: Annotated[Count | None, Meta(description="Since the driver was loaded.")] = None
    aggregate: Annotated[Count | None, Meta(description="Over the board's life.")] = None


class GpuHealth(Document, frozen=True):
    """Health counters that stay put between faults."""

    row_remap: Annotated[RowRemap | None, Meta(description="Remapped rows.")] = None
    retired_pages: Annotated[RetiredPages | None, Meta(description="Retired pages.")] = None
    ecc_uncorrectable: Annotated[EccUncorrectable | None, Meta(description="Uncorrectable ECC errors.")] = None


class LinkWidth(Document, frozen=True):
    """PCIe lanes."""

    current: Annotated[Count | None, Meta(description="Lanes in use.")] = None
    max: Annotated[Count | None, Meta(description="Lanes that device and slot could use.")] = None


class Gpu(Document, frozen=True):
    """One GPU. A lost GPU keeps its identity and last known facts."""

    uuid: Annotated[str | None, Meta(description="GPU UUID; an all-zero one identifies nothing.")] = None
    index: Annotated[Count | None, Meta(description="Order in the driver; never a key.")] = None
    name: Annotated[str | None, Meta(description="Product name as NVML reports it.")] = None
    serial: Annotated[str | None, Meta(description="Serial of the board, which two GPUs may share.")] = None
    pci_bus_id: Annotated[str | None, Meta(description="Canonical PCI address, such as `00000000:18:00.0`.")] = None
    numa_node: Annotated[Count | None, Meta(description="NUMA node that the GPU is attached to.")] = None
    vram_mib: Annotated[Count | None, Meta(description="Memory of the board in MiB.")] = None
    unified_memory: Annotated[bool | None, Meta(description="The memory is the host's, by nature of the part.")] = None
    architecture: Annotated[str | None, Meta(description="Such as `Hopper`.")] = None
    compute_capability: Annotated[str | None, Meta(description="Such as `9.0`.")] = None
    vbios: Annotated[str | None, Meta(description="Version of the video BIOS.")] = None
    part_number: Annotated[str | None, Meta(description="Part number of the board.")] = None
    ecc_mode: Annotated[Mode | None, Meta(description="Error correction.")] = None
    mig_mode: Annotated[Mode | None, Meta(description="Multi-instance mode.")] = None
    mig_instances: Annotated[tuple[MigInstance, ...], Meta(max_length=128, description="MIG devices by (gi, ci).")] = ()
    nvlinks: Annotated[tuple[NvLink, ...], Meta(max_length=128, description="NVLinks.")] = ()
    fabric: Annotated[Fabric | None, Meta(description="NVLink fabric.")] = None
    health: Annotated[GpuHealth | None, Meta(description="Health counters.")] = None
    pcie_link_width: Annotated[LinkWidth | None, Meta(description="PCIe link width.")] = None
    virtualization: Annotated[
        str | None,
        Meta(description="`pass_through` or `vgpu` inside a guest, `host_vgpu` on its host; absent on bare metal."),
    ] = None
    lost: Annotated[bool | None, Meta(description="PCI lists the GPU but the driver cannot reach it.")] = None


def _not_said() -> Enumeration:
    """Silence is not absence: a section that does not say it is complete is not, and makes no GPU missing."""
    return Enumeration.INCOMPLETE


class GpusSection(Section, frozen=True):
    """The GPUs of the machine. A complete enumeration of none is a healthy host without GPUs."""

    # A factory, because a plain default would be left out of the bytes: the section always says how far it got.
    enumeration: Annotated[Enumeration, Meta(description="How far counting got.")] = field(default_factory=_not_said)
    reason: Annotated[str | None, Meta(description="Why the enumeration is not complete.")] = None
    driver_version: Annotated[str | None, Meta(description="Driver, such as `580.105.08`.")] = None
    cuda_driver_version: Annotated[str | None, Meta(description="Newest CUDA the driver serves, such as `13.0`.")] = (
        None
    )
    kernel_module: Annotated[Literal["open", "proprietary"] | None, Meta(description="Kernel module flavour.")] = None
    gpus: Annotated[tuple[Gpu, ...], Meta(max_length=1024, description="The GPUs, by PCI address.")] = ()
