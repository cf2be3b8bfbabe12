"""Collecting from NVML within a time: in a process of its own, since a call into a hung driver cannot be stopped.

Source: case A19 and rule 16 ("Every probe has a deadline that includes its children").
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from agent.gpus.section import unavailable
from domain import sections
from domain.availability import Availability
from domain.documents.gpus import GpusSection
from domain.errors import InvalidSection

PROBE: Final = (sys.executable, "-m", "agent.gpus.nvml")
_REAP_SECONDS_MAX: Final = 1.0
_PAUSE_SECONDS: Final = 0.01
_CHUNK: Final = 65536


def collect_with_deadline(seconds: float, command: Sequence[str] = PROBE) -> GpusSection:
    """Return the section that the probe writes, or an unavailable one when it does not end well within `seconds`.

    The probe and everything it started are killed at the deadline. A probe that the kernel holds in an
    uninterruptible call outlives the kill, but not this call. After such a hang, wait before the next attempt: every
    further one would hang as well.
    """
    until = time.monotonic() + seconds
    process = subprocess.Popen(  # noqa: S603 - our own program, by its absolute path
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    if process.stdout is None:
        raise RuntimeError("a process with a piped output has one")
    with process.stdout as output:
        content = _read(output, until)
        ended = content is not None and _ends(process.pid, until)
        # Before it is reaped, the process keeps its number from being given to another group.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS_MAX)
    if content is None or not ended:
        return _failed(f"NVML did not answer within {seconds:g} s")
    return _decoded(content, process.returncode)


def _decoded(content: bytes, status: int | None) -> GpusSection:
    if status != 0:
        return _failed(f"the NVML probe ended with status {status}")
    try:
        found = sections.decode("gpus", content)
    except InvalidSection as error:
        return _failed(f"the NVML probe wrote no section: {error}")
    if not isinstance(found, GpusSection):
        raise TypeError("the decoder of a gpus section gives another document")
    return found


def _failed(problem: str) -> GpusSection:
    return unavailable(problem, Availability.TEMPORARILY_FAILED)


def _read(output: IO[bytes], until: float) -> bytes | None:
    """Return everything written until the end of the output; None when it has no end in time, or none in bounds."""
    content = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while len(content) <= sections.SECTION_BYTES_MAX:
            remaining = until - time.monotonic()
            if remaining <= 0 or not selector.select(remaining):
                return None
            chunk = os.read(output.fileno(), _CHUNK)
            if not chunk:
                return bytes(content)
            content += chunk
    return None


def _ends(pid: int, until: float) -> bool:
    """Wait for the process to end by itself, without reaping it."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
