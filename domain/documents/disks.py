"""The `disks` section."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Bytes, Count, Document, Section


class Disk(Document, frozen=True):
    """One physical disk; partitions, mappings and further paths of a multipath disk are none."""

    name: Annotated[str, Meta(description="Kernel name, which may swap between boots.")]
    wwn: Annotated[str | None, Meta(description="World-wide name or NAA/EUI id.")] = None
    serial: Annotated[str | None, Meta(description="Serial number.")] = None
    namespace: Annotated[Count | None, Meta(description="NVMe namespace id.")] = None
    model: Annotated[str | None, Meta(description="Model.")] = None
    size_bytes: Annotated[Bytes | None, Meta(description="Capacity.")] = None
    rotational: Annotated[bool | None, Meta(description="Has moving parts.")] = None
    transport: Annotated[str | None, Meta(description="`nvme`, `sata`, `sas`, `virtio`, ….")] = None
    pci_bus_id: Annotated[str | None, Meta(description="PCI address of its controller.")] = None
    bus_path: Annotated[
        str | None, Meta(description="Place on its bus; identifies a disk that has nothing better.")
    ] = None


class Filesystem(Document, frozen=True):
    """One filesystem that the node itself fills, or shares."""

    mount: Annotated[str, Meta(description="Mount point.")]
    type: Annotated[str | None, Meta(description="Kind, such as `ext4`.")] = None
    total_bytes: Annotated[Bytes | None, Meta(description="Size.")] = None
    shared: Annotated[bool | None, Meta(description="Shared with other nodes (a network filesystem).")] = None


class DisksSection(Section, frozen=True):
    """Disks and filesystems."""

    disks: Annotated[tuple[Disk, ...], Meta(max_length=8192, description="Disks, by identity.")] = ()
    filesystems: Annotated[
        tuple[Filesystem, ...], Meta(max_length=4096, description="Filesystems, by mount point.")
    ] = ()
