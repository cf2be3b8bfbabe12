"""The names of GPUs."""

import strawberry

from schema.enums import GpuKind


@strawberry.type(description="What a GPU is, by the name that its driver gives it.")
class GpuName:
    """`domain.gpu_names.GpuName`."""

    product: str = strawberry.field(
        name="gpuProduct",
        description="`<MODEL>-<FORM>-<MEMORY>GB`, such as `H100-SXM5-80GB`; it normalizes to itself. The canonical "
        "name where the table lacks the name, or memory does not tell which of several products it is.",
    )
    model: str = strawberry.field(
        name="gpuModel", description="Family, such as `H100`; `other` for an unknown name and for a part of a board."
    )
    kind: GpuKind = strawberry.field(description="What the name is the name of.")
    known: bool = strawberry.field(description="The table has the name.")
    part_of: str | None = strawberry.field(description="Family of the board that a virtual GPU or MIG device is of.")
    table_version: int = strawberry.field(description="The version of the table that says so.")


@strawberry.type(description="A product of the table.")
class GpuProduct:
    """`domain.gpu_models.GpuProduct`."""

    product: str = strawberry.field(description="Its name: model, form and memory.")
    model: str = strawberry.field(description="Family.")
    form: str = strawberry.field(description="Form of the board, such as `SXM5` or `PCIE`.")
    memory_gb: int | None = strawberry.field(
        name="memoryGB", description="Nominal memory; null when it has none of its own, or no source tells."
    )
    architecture: str | None = strawberry.field(description="GPU architecture, such as `Hopper`.")
    unified: bool = strawberry.field(description="It works in the host's memory, by nature of the part.")
    names: list[str] = strawberry.field(description="Names by which drivers and tools call it.")
    since: int = strawberry.field(description="The first version of the table with this row.")
    name_sources: list[str] = strawberry.field(description="Keys of the sources of its names.")
    memory_sources: list[str] = strawberry.field(description="Keys of the sources of its memory.")


@strawberry.type(description="What stands before the profile in the names of a board's virtual GPUs.")
class VgpuStem:
    """`domain.gpu_models.VgpuStem`."""

    stem: str = strawberry.field(description="Such as `GRID A100X` of `GRID A100X-40C`.")
    model: str | None = strawberry.field(description="Family of the board, when the table has it.")
    since: int = strawberry.field(description="The first version of the table with this row.")


@strawberry.type(description="Where facts of the table come from.")
class GpuModelSource:
    """An entry of the table's sources."""

    key: str = strawberry.field(description="What rows name it by.")
    description: str = strawberry.field(description="What it is.")


@strawberry.type(description="The table by which GPUs are named.")
class GpuModelTable:
    """`domain.gpu_models.GpuModelTable`."""

    version: int = strawberry.field(description="Raised with every product that is added or renamed.")
    models: list[str] = strawberry.field(description="The families.")
    products: list[GpuProduct] = strawberry.field(description="The products, by family.")
    vgpu_stems: list[VgpuStem] = strawberry.field(description="By what names of virtual GPUs are told.")
    sources: list[GpuModelSource] = strawberry.field(description="Where the table's facts come from.")
