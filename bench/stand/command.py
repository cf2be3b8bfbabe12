"""How a bench ends as a command: with its answer, with what it misses, or stopped."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

from bench.stand.errors import CannotMeasure
from bench.stand.progress import say
from db.embedded import EmbeddedPostgresError

_INTERRUPTED: Final = 130


def answered(measure: Callable[[], str]) -> int:
    """Print what a bench answers; returns the exit status, which is 0 whatever was seen."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        print(measure())
    except (CannotMeasure, EmbeddedPostgresError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return _INTERRUPTED
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's signature
    # Once: what is being stopped then is stopped to the end.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
