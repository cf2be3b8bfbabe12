"""The tables for people, and what was to be reached beside what was."""

from collections.abc import Iterator, Sequence
from typing import Final

from bench.feeding.figures import IDLE_P50_MS, OTHER_PROCESS, OWN_MUTATION, Load, Seen
from bench.feeding.sides import Kind
from bench.stand.reaches import Reach, reached

_SIDES_REACHES: Final = (
    Reach(f"idle_p50_{OWN_MUTATION}_vs_{IDLE_P50_MS}_ms", 1, at_least=False),
    Reach(f"idle_p50_{OTHER_PROCESS}_vs_{IDLE_P50_MS}_ms", 1, at_least=False),
    Reach("loaded_p99_vs_1_s", 1, at_least=False),
    Reach("loaded_delivered", 1),
)
_SOAK_REACHES: Final = (
    Reach("soak_growth", 1.05, at_least=False),
    Reach("soak_faults", 0, at_least=False),
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


def reaches(seen: Seen) -> tuple[Reach, ...]:
    """Return what is to be reached by what was measured."""
    return (_SIDES_REACHES if Kind.OURS in seen.sides else ()) + (_SOAK_REACHES if seen.soak else ())


def report(seen: Seen) -> str:
    """Return the tables."""
    blocks = (
        [", ".join(f"{name} {value}" for name, value in seen.setting.items())],
        *([list(_idle(seen)), list(_loaded(seen)), list(_memory(seen))] if seen.sides else []),
        list(_soak(seen)),
        list(reached(seen.ratios(), reaches(seen))),
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


def _soak(seen: Seen) -> Iterator[str]:
    if seen.soak is None:
        return
    found = seen.soak.document()
    rss = found.pop("rss_mib")
    yield "soak: " + ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value:,}" for name, value in found.items()
    )
    yield f"memory in MiB: {rss[0]:.0f} at first, {min(rss):.0f} to {max(rss):.0f}, {rss[-1]:.0f} at last"


def _line(first: str, second: str, cells: Sequence[str]) -> str:
    return f"{first:<15}{second:<15}" + "".join(f"{cell:>10}" for cell in cells)
