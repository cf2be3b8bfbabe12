"""The table of GPU models: which products there are, and by which names drivers call them.

The table is data of the package (`gpu_models.json`). Each row says since which version it stands there, so that the
table of an earlier version can be read as it was. Adding or renaming a product raises the version: the nodes that were
planned by an earlier one are then planned anew.
"""

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from domain.errors import InvalidInput


class GpuProduct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A product `<MODEL>-<FORM>-<MEMORY>GB`; one whose memory no source tells, or that has none, ends at its form.

    `unified` says that it works in the host's memory: it has none of its own by nature. `name_sources` and
    `memory_sources` are keys of the table's sources.
    """

    product: str
    model: str
    form: str
    memory_gb: int | None = msgspec.field(name="memoryGB")
    architecture: str | None
    names: tuple[str, ...]
    since: int
    name_sources: tuple[str, ...]
    memory_sources: tuple[str, ...]
    unified: bool = False


class VgpuStem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What stands before the profile in the names of a board's virtual GPUs; `model` is the board's family."""

    stem: str
    model: str | None
    since: int


class GpuModelSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where facts of the table come from."""

    key: str
    description: str


class GpuModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One version of the table."""

    version: int
    sources: tuple[GpuModelSource, ...]
    products: tuple[GpuProduct, ...]
    vgpu_stems: tuple[VgpuStem, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The families, in the order of the table."""
        return tuple(dict.fromkeys(product.model for product in self.products))


_CURRENT: Final = msgspec.json.decode(
    files("domain").joinpath("gpu_models.json").read_bytes(), type=GpuModelTable, strict=True
)
GPU_MODELS_VERSION: Final = _CURRENT.version
_FIRST_VERSION: Final = 2
"""What stood in version 1 is not told apart: version 2 only added to it."""


@cache
def gpu_models(version: int = GPU_MODELS_VERSION) -> GpuModelTable:
    """Return a version of the table; raises InvalidInput for one that is not held."""
    if not _FIRST_VERSION <= version <= GPU_MODELS_VERSION:
        raise InvalidInput(f"version: {version}; the table is held from {_FIRST_VERSION} to {GPU_MODELS_VERSION}")
    return GpuModelTable(
        version,
        _CURRENT.sources,
        tuple(product for product in _CURRENT.products if product.since <= version),
        tuple(stem for stem in _CURRENT.vgpu_stems if stem.since <= version),
    )
