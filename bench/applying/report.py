"""The table for people, and what was to be reached beside what was."""

from collections.abc import Iterator, Sequence
from typing import Final

from bench.applying.figures import OURS, Figure, Seen
from bench.stand.reaches import Reach, reached

_COLUMNS: Final = ("ms", "nodes/s", "client CPU ms", "PG CPU ms")
_FLAT: Final = 1.25
_SHARE_OF_FLOOR: Final = 4


def report(seen: Seen) -> str:
    """Return the tables."""
    blocks = (
        [", ".join(f"{name} {value}" for name, value in seen.setting.items())],
        list(_table(seen)),
        ["reporting a node before, in ms: " + ", ".join(f"{ms:.2f} of {n:,}" for n, ms in seen.reporting_ms.items())],
        list(reached(seen.ratios(), reaches(seen))),
    )
    return "\n\n".join("\n".join(block) for block in blocks)


def reaches(seen: Seen) -> tuple[Reach, ...]:
    """Return what is to be reached: so near to the floor, and flat."""
    smallest, *larger = sorted(seen.nodes)
    flat = (Reach(f"growth_{OURS}_{size}_vs_{smallest}", _FLAT, at_least=False) for size in larger)
    return (Reach("apply_vs_floor", _SHARE_OF_FLOOR, at_least=False), *flat)


def _table(seen: Seen) -> Iterator[str]:
    yield _line("nodes", "by node", _COLUMNS)
    for size, sides in sorted(seen.nodes.items()):
        for place, (side, figure) in enumerate(sides.items()):
            yield _line("" if place else f"{size:,}", side, _cells(figure))


def _cells(figure: Figure) -> Sequence[str]:
    found = (figure.ms, 1000 / figure.ms, figure.client_cpu_ms, figure.database_cpu_ms)
    return [f"{value:,.2f}" for value in found]


def _line(first: str, second: str, cells: Sequence[str]) -> str:
    return f"{first:<12}{second:<10}" + "".join(f"{cell:>16}" for cell in cells)
