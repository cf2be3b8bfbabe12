"""Running NVIDIA's DCGM diagnostics where they are installed.

Source: `dcgmi diag --run LEVEL --json`; level 1 takes seconds, 2 minutes, 3 a quarter of an hour, 4 an hour and more.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agent.gpus.busy import Busy, busy_within
from agent.program import run_within
from domain.command_kinds import UNSUPPORTED
from domain.dcgm_diagnosis import DcgmDiagnosis, UnreadableDiagnosis, read_dcgm

PROGRAM: Final = "dcgmi"
SECONDS_MAX: Final = {1: 600.0, 2: 1200.0, 3: 3600.0, 4: 3 * 3600.0}
"""By level: several times what a machine of eight GPUs takes."""
IDLE_LEVEL_MIN: Final = 2
"""From here on the tests load the GPUs: what runs on them would spoil them, and they it."""
BUSY_SECONDS_MAX: Final = 60.0
OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NotRun:
    """Why there is no diagnosis, in one word and for people."""

    reason: str
    message: str


def run_dcgm(
    level: int,
    find: Callable[[], str | None] = lambda: shutil.which(PROGRAM),
    busy: Callable[[], Busy] = lambda: busy_within(BUSY_SECONDS_MAX),
    seconds: float | None = None,
) -> DcgmDiagnosis | NotRun:
    """Test this machine's GPUs; blocks until the tests have ended, or were ended by their time."""
    program = find()
    if program is None:
        return NotRun(UNSUPPORTED, f"{PROGRAM} is not installed on this machine")
    if level >= IDLE_LEVEL_MIN and (refusal := _refused(busy())) is not None:
        return refusal
    allowed = SECONDS_MAX[level] if seconds is None else seconds
    ended = run_within((program, "diag", "-r", str(level), "-j"), allowed, output_bytes_max=OUTPUT_BYTES_MAX)
    if ended.status is None:
        return NotRun("deadline", f"{PROGRAM} did not end within {allowed:g} s")
    try:
        # A test that failed is told by the status too, and in the output it has a name.
        return read_dcgm(ended.output)
    except UnreadableDiagnosis as error:
        return NotRun("failed", f"{PROGRAM} ended with status {ended.status}: {error}")


def _refused(busy: Busy) -> NotRun | None:
    """Say why GPUs that are in use are not tested; where that cannot be told they may be."""
    if busy.gpus:
        return NotRun("gpu-busy", f"processes compute on GPU {', '.join(map(str, busy.gpus))}")
    if busy.problem is not None:
        return NotRun("gpu-busy", f"whether GPUs are in use cannot be told: {busy.problem}"[:1000])
    return None
