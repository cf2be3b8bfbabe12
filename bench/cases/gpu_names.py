"""The catalogs of GPU names, as the product understands them: every name, with every memory that is told of it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.cases.answer import Concluded
from bench.cases.lines import aligned
from domain.gpu_names import GpuKind, GpuName, normalize

_REMARK: Final = re.compile(r"\s*\((?:also|before|no prefix|or like)[^)]*\)")
_BETWEEN: Final = re.compile(r"\s*(?:,| / | ; )\s*")
_MEMORY: Final = re.compile(r"\b\d{4,6}\b")
_MAKERS: Final = ("NVIDIA", "Tesla", "Quadro", "GeForce", "GRID", "Orin", "Graphics", "[", "ERR")


def names_with_memory(files: Sequence[Path]) -> Concluded:
    """Read tables whose first column has names and whose second may have MiB, an amount for each or all for one."""
    found: list[tuple[str, int | None]] = []
    has_memory = False
    for cells in _rows(files[0].read_text()):
        if "name" in cells[0]:
            has_memory = cells[1] == "MiB"
        elif not set(cells[0]) <= {"-"}:
            names = list(written_names(cells[0]))
            told = [cells[1]] * len(names) if has_memory else [""] * len(names)
            parts = cells[1].split(" / ")
            for name, text in zip(names, parts if has_memory and len(parts) == len(names) else told, strict=True):
                found += [(name, mib) for mib in (list(map(int, _MEMORY.findall(text))) or [None])]
    return Concluded("normalize", _lines(found))


def driver_names(files: Sequence[Path]) -> Concluded:
    """Read a table whose last column has names, and lists of names before a colon, or of virtual GPUs behind it."""
    text = files[0].read_text()
    names = [cells[-1] for cells in _rows(text) if cells[0].startswith("0x")]
    for line in text.splitlines():
        head, _, rest = line.removeprefix("- ").partition(": ")
        if line.startswith("- ") and rest:
            names += [each for each in rest.split(", ") if each != "..."] if "(" in head else [head]
    return Concluded("normalize", _lines((name, None) for name in dict.fromkeys(names)))


def written_names(cell: str) -> Iterator[str]:
    """Yield the names of a cell; one that continues another (`RTX A5500 / A5000`, `-32GB / -16GB`) is completed."""
    whole = ""
    for piece in _BETWEEN.split(_REMARK.sub("", cell)):
        if piece.startswith("-"):
            yield whole.rpartition("-")[0] + piece
        elif piece.startswith(_MAKERS) or not whole:
            whole = piece
            yield piece
        else:
            words = whole.split()
            number = next(at for at, word in enumerate(words) if any(map(str.isdigit, word)))
            tail = words[number + 1 :] if " " not in piece else []
            yield " ".join([*words[:number], piece, *tail])


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def _lines(names: Iterable[tuple[str, int | None]]) -> list[str]:
    found = [(name, mib, normalize(name, mib)) for name, mib in names]
    kinds = Counter(each.kind for _, _, each in found)
    head = ("name", "MiB", "product", "model", "kind")
    told = [_row(name, mib, each) for name, mib, each in found if each.kind is not GpuKind.UNKNOWN]
    unknown = [name for name, _, each in found if each.kind is GpuKind.UNKNOWN]
    return [
        f"{len(found)} names: {', '.join(f'{count} {kind.value}' for kind, count in kinds.most_common())}",
        *aligned([head, *told]),
        f"not in the table: {', '.join(unknown) or 'none'}",
    ]


def _row(name: str, mib: int | None, found: GpuName) -> tuple[str, ...]:
    part = f" of {found.part_of or 'unknown'}" if found.kind in {GpuKind.MIG, GpuKind.VGPU} else ""
    return (name, "-" if mib is None else str(mib), found.product, found.model, f"{found.kind.value}{part}")
