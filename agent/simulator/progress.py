"""How far the fleet is, for people: bars on a terminal, lines of log elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final, Protocol

import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LINE_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)


class Meter(Protocol):
    """Where progress is told."""

    def reported(self, count: int) -> None:
        """Tell that so many more nodes were reported."""

    def applied(self, count: int) -> None:
        """Tell that so many more nodes were applied."""


class _Bars:
    def __init__(self, progress: Progress, nodes: int) -> None:
        self._progress = progress
        self._reported: TaskID = progress.add_task("reported", total=nodes)
        self._applied: TaskID = progress.add_task("applied", total=nodes)

    def reported(self, count: int) -> None:
        self._progress.advance(self._reported, count)

    def applied(self, count: int) -> None:
        self._progress.advance(self._applied, count)


class _Lines:
    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._counts = {"reported": 0, "applied": 0}
        self._next_at = monotonic() + _LINE_SECONDS

    def reported(self, count: int) -> None:
        self._tell("reported", count)

    def applied(self, count: int) -> None:
        self._tell("applied", count)

    def _tell(self, what: str, count: int) -> None:
        self._counts[what] += count
        if monotonic() >= self._next_at:
            self._next_at = monotonic() + _LINE_SECONDS
            _log.info("progress", nodes=self._nodes, **self._counts)


@contextmanager
def meter(nodes: int) -> Iterator[Meter]:
    """Show progress on standard error for the block."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(nodes)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bars(progress, nodes)
