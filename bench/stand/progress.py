"""What the bench is doing, for who waits: on standard error, so that the answer stands alone."""

import sys
import time
from typing import Final

_BEGUN: Final = time.monotonic()


def elapsed() -> float:
    """Return for how many seconds the bench has run."""
    return time.monotonic() - _BEGUN


def say(line: str) -> None:
    """Say what is done next."""
    sys.stderr.write(f"bench {elapsed():4.0f} s: {line}\n")
    sys.stderr.flush()
