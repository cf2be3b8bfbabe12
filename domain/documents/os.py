"""The `os` section."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Document, Section


class Distro(Document, frozen=True):
    """The distribution, from os-release."""

    id: Annotated[str | None, Meta(description="Such as `debian`.")] = None
    version: Annotated[str | None, Meta(description="VERSION_ID; absent on rolling distributions.")] = None
    pretty_name: Annotated[str | None, Meta(description="Name for people.")] = None


class Software(Document, frozen=True):
    """An installed program."""

    name: Annotated[str, Meta(description="Such as `containerd` or `vllm`.")]
    version: Annotated[str | None, Meta(description="Its version.")] = None


class Imex(Document, frozen=True):
    """The IMEX service of a multi-node NVLink domain."""

    version: Annotated[str | None, Meta(description="Its version.")] = None
    nodes: Annotated[tuple[str, ...], Meta(description="Nodes configured for it.")] = ()


class OsSection(Section, frozen=True):
    """Operating system and what it runs."""

    distro: Annotated[Distro | None, Meta(description="Distribution.")] = None
    kernel: Annotated[str | None, Meta(description="Kernel release.")] = None
    arch: Annotated[str | None, Meta(description="Architecture of the kernel.")] = None
    kvm_available: Annotated[bool | None, Meta(description="Virtual machines can run here.")] = None
    container_runtimes: Annotated[tuple[Software, ...], Meta(max_length=256, description="Container runtimes.")] = ()
    fabric_manager: Annotated[Software | None, Meta(description="NVIDIA fabric manager.")] = None
    imex: Annotated[Imex | None, Meta(description="IMEX service.")] = None
    engines: Annotated[
        Annotated[tuple[Software, ...], Meta(max_length=256)] | None,
        Meta(description="Inference engines; null when the node was not asked."),
    ] = None
