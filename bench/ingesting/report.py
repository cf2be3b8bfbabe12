"""The table for people, and what was to be reached beside what was."""

from collections.abc import Iterator
from typing import Final

from bench.ingesting.figures import Seen
from bench.stand.reaches import Reach, reached

REACHES: Final = (
    Reach("heartbeats_batched_vs_floor", 0.5),
    Reach("heartbeats_single_vs_floor", 0.5),
)


def report(seen: Seen) -> str:
    """Return the whole report."""
    return "\n".join(_lines(seen))


def _lines(seen: Seen) -> Iterator[str]:
    yield ", ".join(f"{name} {value}" for name, value in seen.setting.items())
    yield ""
    titles = ("nodes' reports/s", "p50 ms", "p95 ms", "p99 ms", "side CPU ms", "PG CPU ms")
    yield f"{'':<30}" + "".join(f"{title:>18}" if at == 0 else f"{title:>12}" for at, title in enumerate(titles))
    for kind, sides in seen.kinds.items():
        for name, figure in sides.items():
            shown = (figure.p50_ms, figure.p95_ms, figure.p99_ms)
            waits = "".join(f"{'—':>12}" if each is None else f"{each:>12,.2f}" for each in shown)
            cpu = f"{figure.side_cpu_ms:>12,.3f}{figure.database_cpu_ms:>12,.3f}"
            yield f"{kind:<24}{name:<6}{figure.reports_per_second:>18,.1f}{waits}{cpu}"
    yield ""
    yield from reached(seen.ratios(), REACHES)
