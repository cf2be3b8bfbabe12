"""The `cpu` section: processors, counted from the topology and never multiplied."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Count, Document, Section


class NumaCpus(Document, frozen=True):
    """The CPUs of one NUMA node; a node of memory alone has an empty list."""

    id: Annotated[int, Meta(ge=0, le=2**31 - 1, description="Number of the NUMA node.")]
    cpus: Annotated[str, Meta(description="Its CPUs as a kernel list, such as `0-31,64-95`.")] = ""


class CpuSection(Section, frozen=True):
    """Processors of the machine."""

    arch: Annotated[str | None, Meta(description="Machine architecture, such as `x86_64`.")] = None
    vendor: Annotated[str | None, Meta(description="Maker, such as `GenuineIntel` or `ARM`.")] = None
    model: Annotated[
        str | None, Meta(description="Model name; without one, implementer and part; several are joined by ` + `.")
    ] = None
    sockets: Annotated[Count | None, Meta(description="Number of packages.")] = None
    cores: Annotated[Count | None, Meta(description="Number of physical cores.")] = None
    threads: Annotated[Count | None, Meta(description="Number of logical CPUs that are online.")] = None
    numa_nodes: Annotated[tuple[NumaCpus, ...], Meta(max_length=1024, description="NUMA nodes with their CPUs.")] = ()
    flags: Annotated[tuple[str, ...], Meta(description="Feature flags, sorted.")] = ()
    isolated: Annotated[str | None, Meta(description="CPUs isolated from the scheduler, as a kernel list.")] = None
