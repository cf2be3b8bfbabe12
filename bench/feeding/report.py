"""The tables for people, and what was to be reached beside what was."""

from collections.abc import Iterator, Sequence
from typing import Final

from bench.feeding.figures import IDLE_P50_MS, Load, Seen
from bench.stand.reaches import Reach, reached

REACHES: Final = (
    Reach(f"idle_p50_own_mutation_vs_{IDLE_P50_MS}_ms", 1, at_least=False),
    Reach(f"idle_p50_other_process_vs_{IDLE_P50_MS}_ms", 1, at_least=False),
    Reach("loaded_p99_vs_1_s", 1, at_least=False),
    Reach("loaded_delivered", 1),
)
_IDLE: Final = ("p50 ms", "p95 ms", "p99 ms", "max ms")
_LOADED: Final = (
    "offered/s",
    "got/s",
    "came %",
    "p50 ms",
    "p99 ms",
    "CPU µs",
    "PG CPU s",
    "lost",
    "doubled",
    "RSS MiB",
)


def report(seen: Seen) -> str:
    """Return the tables."""
    blocks = (
        [", ".join(f"{name} {value}" for name, value in seen.setting.items())],
        list(_idle(seen)),
        list(_loaded(seen)),
        list(_memory(seen)),
        [", ".join(f"{name} {value}" for name, value in (seen.soak or {}).items())],
        list(reached(seen.ratios(), REACHES)),
    )
    return "\n\n".join("\n".join(block) for block in blocks if any(block))


def _idle(seen: Seen) -> Iterator[str]:
    yield _line("one at a time", "committed by", _IDLE)
    for name, side in seen.sides.items():
        for who, each in side.idle.items():
            found = (each.p50_ms, each.p95_ms, each.p99_ms, each.max_ms)
            yield _line(name, who, [f"{value:,.1f}" for value in found])


def _loaded(seen: Seen) -> Iterator[str]:
    yield _line("loaded", "", _LOADED)
    for name, side in seen.sides.items():
        for load in (side.light, *side.loads):
            yield _line(name, "kept up" if load.kept_up else "fell behind", _cells(load))


def _cells(load: Load) -> Sequence[str]:
    return (
        f"{load.offered:,.1f}",
        f"{load.rate:,.2f}",
        f"{100 * load.complete:,.1f}",
        f"{load.latency.p50_ms:,.0f}",
        f"{load.latency.p99_ms:,.0f}",
        f"{load.cpu_us:,.0f}",
        f"{load.database_cpu_seconds:,.1f}",
        f"{load.lost:,}",
        f"{load.doubled + load.disordered:,}",
        f"{load.rss_mib:,.0f}",
    )


def _memory(seen: Seen) -> Iterator[str]:
    sizes = sorted({size for side in seen.sides.values() for size in side.memory.at})
    yield _line("memory in MiB", "", ("before", *(f"{size:,}" for size in sizes), "KiB each"))
    for name, side in seen.sides.items():
        at = [side.memory.at.get(size, 0.0) for size in sizes]
        yield _line(name, "", [f"{value:,.0f}" for value in (side.memory.before, *at, side.memory.kib_each)])


def _line(first: str, second: str, cells: Sequence[str]) -> str:
    return f"{first:<15}{second:<15}" + "".join(f"{cell:>10}" for cell in cells)
