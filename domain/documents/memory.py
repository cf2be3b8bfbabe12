"""The `memory` section."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Bytes, Count, Document, Section


class NumaMemory(Document, frozen=True):
    """The memory of one NUMA node."""

    id: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Number of the NUMA node.")]
    total_bytes: Annotated[Bytes | None, Meta(description="Memory of the node.")] = None


class HugePages(Document, frozen=True):
    """Reserved huge pages of one size."""

    size_kib: Annotated[Count, Meta(description="Size of one page in KiB.")]
    count: Annotated[Count, Meta(description="Number of reserved pages.")]


class Dimm(Document, frozen=True):
    """One memory module."""

    locator: Annotated[str, Meta(description="Slot, as the board names it.")]
    size_bytes: Annotated[Bytes | None, Meta(description="Capacity.")] = None
    type: Annotated[str | None, Meta(description="Kind, such as `DDR5`.")] = None
    speed_mts: Annotated[Count | None, Meta(description="Configured speed in MT/s.")] = None
    part_number: Annotated[str | None, Meta(description="Part number of the maker.")] = None
    serial: Annotated[str | None, Meta(description="Serial number.")] = None


class MemorySection(Section, frozen=True):
    """Memory of the machine."""

    total_bytes: Annotated[Bytes | None, Meta(description="Memory the kernel manages.")] = None
    numa_nodes: Annotated[tuple[NumaMemory, ...], Meta(max_length=1024, description="Memory per NUMA node.")] = ()
    huge_pages: Annotated[tuple[HugePages, ...], Meta(max_length=16, description="Reserved huge pages, per size.")] = ()
    swap_bytes: Annotated[Bytes | None, Meta(description="Swap space.")] = None
    dimms: Annotated[tuple[Dimm, ...], Meta(max_length=1024, description="Memory modules.")] = ()
