"""What comes of a recorded file, and the rules that say who reads it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Concluded:
    """The product concluded something; `how` says what the file was fed to."""

    how: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class NoReader:
    """The product does not read such files."""

    why: str


Answer = Concluded | NoReader
Reader = Callable[[Sequence[Path]], Answer]


@dataclass(frozen=True, slots=True)
class Rule:
    """Who reads the files that match, by their path below the folder; with `together`, a folder's at once."""

    pattern: str
    reader: Reader
    together: bool = False


def no_reader(why: str) -> Reader:
    """Make the reader of what is not read."""
    return lambda _: NoReader(why)
