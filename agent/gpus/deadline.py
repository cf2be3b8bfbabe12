"""Collecting from NVML within a time: in a process of its own, since a call into a hung driver cannot be stopped.

Source: case A19 and rule 16 ("Every probe has a deadline that includes its children").
"""

import sys
from collections.abc import Sequence
from typing import Final

from agent.gpus.section import unavailable
from agent.program import run_within
from domain import sections
from domain.availability import Availability
from domain.documents.gpus import GpusSection
from domain.errors import InvalidSection

PROBE: Final = (sys.executable, "-m", "agent.gpus.nvml")


def collect_with_deadline(seconds: float, command: Sequence[str] = PROBE) -> GpusSection:
    """Return the section that the probe writes, or an unavailable one when it does not end well within `seconds`.

    After a hang, wait before the next attempt: every further one would hang as well.
    """
    ended = run_within(command, seconds, output_bytes_max=sections.SECTION_BYTES_MAX)
    if ended.status is None or ended.cut:
        return _failed(f"NVML did not answer within {seconds:g} s")
    return _decoded(ended.output, ended.status)


def _decoded(content: bytes, status: int) -> GpusSection:
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
