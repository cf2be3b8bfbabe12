"""What a GPU is, by the name that its driver gives it (rule 4).

A name is looked up as a whole: a part of a name is another product (GH200 holds H200, L40S holds L40 holds L4).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final

from domain.availability import known_text
from domain.documents.gpus import Gpu
from domain.gpu_models import GPU_MODELS_VERSION, GpuProduct, gpu_models

OTHER: Final = "other"
"""The family of what belongs to none, and of what is no whole board."""

NAME_LENGTH_MAX: Final = 96
"""NVML's longest name (`NVML_DEVICE_NAME_V2_BUFFER_SIZE`)."""

# The driver's reserve, and error correction kept in GDDR, lower what is reported; rounding may raise it.
_BAND_DOWN: Final = 0.08
_BAND_UP: Final = 0.01
_MIB_PER_GB: Final = 1024

_NOT_CANONICAL: Final = re.compile(r"[^A-Z0-9]+")
_MAKER: Final = "NVIDIA-"
_BRAND: Final = "TESLA-"
_CUT_ENDS: Final = ("...", "…")
_CUT_MARK: Final = "-CUT"
_MIG: Final = re.compile(r"(?:(?P<board>.+)-)?MIG-(?:\d+C-)?\d+G-\d+GB(?:-[A-Z]{2,4}){0,3}")
# [slices-]<GB>[series]: A, B, C and Q, CME with media engines, and B4 of the oldest.
_VGPU: Final = re.compile(r"(?P<stem>.+?)-(?:\d{1,2}-)?\d{1,3}(?:[ABCQ]|CME|B4)?")
_VGPU_BRAND: Final = "GRID-"
_VGPU_GUEST: Final = "vgpu"
_NOT_NAMED: Final = frozenset({"GRAPHICS-DEVICE"})
_DISPLAYS: Final = frozenset({"DGX-DISPLAY"})


class GpuKind(StrEnum):
    """What a name is the name of."""

    BOARD = "board"
    """A whole GPU with memory of its own."""
    INTEGRATED = "integrated"
    """A GPU that works in the host's memory (GB10, Jetson)."""
    VGPU = "vgpu"
    """A virtual GPU inside a guest."""
    MIG = "mig"
    """A MIG device."""
    DISPLAY = "display"
    """An adapter that drives a screen beside the GPUs."""
    PLACEHOLDER = "placeholder"
    """A text that names nothing, such as `Graphics Device`: the driver is older than the board."""
    CUT = "cut"
    """A name that a table for people cut short: its beginning names another product."""
    UNKNOWN = "unknown"
    """A name that the table lacks."""


UNNAMED_BOARDS: Final = frozenset({GpuKind.PLACEHOLDER, GpuKind.CUT, GpuKind.UNKNOWN})
"""What may be a whole GPU of a model that the table cannot tell."""


@dataclass(frozen=True, slots=True)
class GpuName:
    """What a name means. `product` normalizes to itself; `model` is the family that pools, policies and meters use.

    `known` says that the table has the name; several products may share one, and then `product` stays the canonical
    name unless the memory tells which. A part of a board is no board: its model is `other`, and `part_of` names the
    family of the board where the table knows it.
    """

    product: str
    model: str
    kind: GpuKind
    known: bool
    table_version: int
    part_of: str | None = None


@dataclass(frozen=True, slots=True)
class _Index:
    products: Mapping[str, GpuProduct]
    names: Mapping[str, tuple[GpuProduct, ...]]
    stems: Mapping[str, str | None]


def canonicalize(name: str) -> str:
    """Return the name in upper case with `-` for every run of other characters, without the maker's name."""
    canonical = _NOT_CANONICAL.sub("-", name.upper()).strip("-")
    while canonical.startswith(_MAKER):
        canonical = canonical.removeprefix(_MAKER)
    return canonical[:NAME_LENGTH_MAX].rstrip("-")


def normalize(name: str, vram_mib: int | None, version: int = GPU_MODELS_VERSION) -> GpuName:
    """Say what a GPU of this name and memory is; a name without a letter or digit gives an empty product."""
    canonical = canonicalize(name)
    index = _index(version)
    if name.rstrip().endswith(_CUT_ENDS):
        # The mark keeps what is left of the name from being read as the name of a shorter one.
        product = f"{canonical}{_CUT_MARK}" if _candidates(index, canonical) else canonical
        return GpuName(product, OTHER, GpuKind.CUT, known=False, table_version=version)
    if candidates := _candidates(index, canonical):
        return _among(candidates, canonical, vram_mib, version)
    return _no_board(index, canonical, version) or GpuName(
        canonical,
        OTHER,
        GpuKind.PLACEHOLDER if canonical in _NOT_NAMED or known_text(name) is None else GpuKind.UNKNOWN,
        known=False,
        table_version=version,
    )


def is_display_adapter(name: str | None) -> bool:
    """Say whether the device only drives a screen beside the GPUs (DGX Station A100) and is no compute GPU."""
    return name is not None and canonicalize(name) in _DISPLAYS


def name_of(gpu: Gpu) -> GpuName | None:
    """Say what a reported GPU is; None for one that came without a name: silence names nothing."""
    name = known_text(gpu.name)
    if name is None or not canonicalize(name):
        return None
    found = (_remembered if len(name) <= NAME_LENGTH_MAX else normalize)(name, gpu.vram_mib)
    if gpu.virtualization != _VGPU_GUEST or found.kind in {GpuKind.VGPU, GpuKind.MIG}:
        return found
    # The driver of the guest knows better than its name: some virtual GPUs are called as the board is.
    board = found.model if found.known else None
    return replace(found, product=canonicalize(name), model=OTHER, kind=GpuKind.VGPU, part_of=board)


def fits(product: GpuProduct, vram_mib: int) -> bool:
    """Say whether a board of this product may report that much memory."""
    if product.memory_gb is None:
        return True
    nominal = product.memory_gb * _MIB_PER_GB
    return nominal * (1 - _BAND_DOWN) <= vram_mib <= nominal * (1 + _BAND_UP)


# A fleet has few names: those of thousands of GPUs are looked up each time that their nodes report.
_remembered: Final = lru_cache(maxsize=1024)(normalize)


@cache
def _index(version: int) -> _Index:
    table = gpu_models(version)
    names: dict[str, list[GpuProduct]] = {}
    for product in table.products:
        for name in {canonicalize(each) for each in product.names}:
            for key in {name, name.removeprefix(_BRAND)}:
                names.setdefault(key, []).append(product)
    return _Index(
        {product.product: product for product in table.products},
        {name: tuple(products) for name, products in names.items()},
        {key: stem.model for stem in table.vgpu_stems for key in _stem_keys(canonicalize(stem.stem))},
    )


def _stem_keys(stem: str) -> tuple[str, str]:
    """Return a stem with and without the brand, which newer drivers leave out."""
    return stem, stem.removeprefix(_VGPU_BRAND)


def _candidates(index: _Index, canonical: str) -> tuple[GpuProduct, ...]:
    """Return the products of a name; a product's own name means that product and no other."""
    own = index.products.get(canonical)
    return index.names.get(canonical, ()) if own is None else (own,)


def _among(candidates: tuple[GpuProduct, ...], canonical: str, vram_mib: int | None, version: int) -> GpuName:
    """Choose by the memory; the name stands for itself when memory leaves none or several."""
    fitting = [each for each in candidates if vram_mib is None or _is_told(each, canonical) or fits(each, vram_mib)]
    first = candidates[0]
    return GpuName(
        fitting[0].product if len(fitting) == 1 else canonical,
        first.model if all(each.model == first.model for each in candidates) else OTHER,
        GpuKind.INTEGRATED if first.unified else GpuKind.BOARD,
        known=True,
        table_version=version,
    )


def _is_told(product: GpuProduct, canonical: str) -> bool:
    """Say whether the name itself tells the product's memory: a reading of a part of it (MIG) changes nothing then."""
    return canonical == product.product or f"{product.memory_gb}GB" in canonical.split("-")


def _no_board(index: _Index, canonical: str, version: int) -> GpuName | None:
    """Recognize the names of parts of boards and of what is no GPU to compute with."""
    if mig := _MIG.fullmatch(canonical):
        boards = _candidates(index, mig["board"] or "")
        board = boards[0].model if boards else None
        return GpuName(canonical, OTHER, GpuKind.MIG, known=bool(boards), table_version=version, part_of=board)
    if (vgpu := _VGPU.fullmatch(canonical)) and (vgpu["stem"] in index.stems or canonical.startswith(_VGPU_BRAND)):
        is_known, board = vgpu["stem"] in index.stems, index.stems.get(vgpu["stem"])
        return GpuName(canonical, OTHER, GpuKind.VGPU, known=is_known, table_version=version, part_of=board)
    if canonical in _DISPLAYS:
        return GpuName(canonical, OTHER, GpuKind.DISPLAY, known=True, table_version=version)
    return None
