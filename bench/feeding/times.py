"""Times of commits, in nanoseconds of the machine's monotonic clock, which all its processes share."""

from array import array
from collections.abc import Iterable
from pathlib import Path


def keep_times(path: str, times: Iterable[int]) -> None:
    """Write times to a file."""
    Path(path).write_bytes(array("q", times).tobytes())


def kept_times(path: str) -> "array[int]":
    """Read them."""
    return array("q", Path(path).read_bytes())
