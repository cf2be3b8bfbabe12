"""The table for people, and what was to be reached beside what was."""

from collections.abc import Iterator, Sequence
from typing import Final

from bench.reading.figures import Seen, Table
from bench.reading.rounds import Figure
from bench.stand.reaches import Reach, reached

_COLUMNS: Final = ("requests/s", "p50 ms", "p95 ms", "server CPU ms", "PG CPU ms")
"""CPU time is by request."""


REACHES: Final = (
    Reach("list_100_vs_postgraphile", 4),
    Reach("list_1000_vs_postgraphile", 4),
    Reach("one_vs_postgraphile", 1.2),
    Reach("list_100_vs_floor", 0.85),
    Reach("list_1000_vs_floor", 0.85),
    Reach("page_90_vs_page_1", 1.1, at_least=False),
    Reach("growth_list_100_100000_vs_1000", 1.25, at_least=False),
    Reach("growth_one_100000_vs_1000", 1.25, at_least=False),
)
"""Growth is to be flat: the last two leave what rounds of one server differ by on a shared machine."""


def report(seen: Seen) -> str:
    """Return the tables."""
    blocks = (
        [", ".join(f"{name} {value}" for name, value in seen.setting.items())],
        list(_table("one process a side", seen.reads)),
        list(_table("compiled, by nodes", seen.growth)),
        ["peak memory in MiB: " + ", ".join(f"{side} {mib:.0f}" for side, mib in seen.peak_mib.items())],
        list(reached(seen.ratios(), REACHES)),
    )
    return "\n\n".join("\n".join(block) for block in blocks)


def _table(title: str, table: Table) -> Iterator[str]:
    yield _line(title, "", _COLUMNS)
    for name, figures in table.items():
        for place, (side, figure) in enumerate(figures.items()):
            yield _line("" if place else name, side, _cells(figure))


def _cells(figure: Figure) -> Sequence[str]:
    return (
        f"{figure.requests_per_second:,.1f}",
        f"{figure.p50_ms:,.2f}",
        f"{figure.p95_ms:,.2f}",
        f"{figure.server_cpu_ms:,.2f}",
        f"{figure.database_cpu_ms:,.2f}",
    )


def _line(first: str, second: str, cells: Sequence[str]) -> str:
    return f"{first:<20}{second:<14}" + "".join(f"{cell:>14}" for cell in cells)
