"""How often this process looks for reference cycles."""

import gc
from typing import Final

THRESHOLDS: Final = (50_000, 2, 4)
"""Objects more made than let go of between looks at the newest, and looks between those at the older generations.

By default (700, 10, 10) a batch of rows and documents, none of which is part of a cycle, is walked through dozens of
times while it is made: a quarter of what applying an inventory cost the server (docs/performance.md). Connections leave
cycles, of some 40 kB each, and live long before: so the older generations are looked at as well, every few thousand
connections.
"""


def look_less_often() -> None:
    """Let the collector run rarely; what is part of no cycle is freed at once in any case."""
    gc.set_threshold(*THRESHOLDS)


def leave_out_the_start() -> None:
    """Never again look at what there is now: modules, types and the schema, which live as long as the process."""
    gc.collect()
    gc.freeze()
