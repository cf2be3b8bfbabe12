"""Running a program within a time, with all that it starts, and its output bounded: an argument vector, no shell.

Source: rule 16 ("Every probe has a deadline that includes its children").
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

_REAP_SECONDS_MAX: Final = 1.0
_PAUSE_SECONDS: Final = 0.01
_CHUNK: Final = 65536


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its status, None when it did not end in time, and the last of what it wrote."""

    status: int | None
    output: bytes
    cut: bool
    """It wrote more than what was kept."""


def run_within(command: Sequence[str], seconds: float, *, output_bytes_max: int, errors_too: bool = False) -> Ended:
    """Run a program that ends within `seconds`, as its output does; blocks, raises OSError when it cannot start.

    It and everything it started are killed at the end. What the kernel holds in an uninterruptible call outlives the
    kill, but not this call. `errors_too` keeps what it writes to standard error as well.
    """
    until = time.monotonic() + seconds
    process = subprocess.Popen(  # noqa: S603 - what the caller names, by its arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors_too else None,
        start_new_session=True,
    )
    if process.stdout is None:
        raise RuntimeError("a process with a piped output has one")
    content = bytearray()
    with process.stdout as output:
        cut, at_end = _read(output, until, content, output_bytes_max)
        ended = at_end and _ends(process.pid, until)
        # Before it is reaped, the process keeps its number from being given to another group.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS_MAX)
    return Ended(process.returncode if ended else None, bytes(content), cut)


def _read(output: IO[bytes], until: float, content: bytearray, most: int) -> tuple[bool, bool]:
    """Read to the end of the output, keeping the last of it; says whether some was dropped, and whether it ended."""
    cut = False
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            remaining = until - time.monotonic()
            if remaining <= 0 or not selector.select(remaining):
                return cut, False
            chunk = os.read(output.fileno(), _CHUNK)
            if not chunk:
                return cut, True
            content += chunk
            cut = cut or len(content) > most
            del content[:-most]


def _ends(pid: int, until: float) -> bool:
    """Wait for the process to end by itself, without reaping it."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
