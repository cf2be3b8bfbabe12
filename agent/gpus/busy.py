"""Which GPUs have processes that compute, within a time: in a process of its own, as every look through NVML.

`python -m agent.gpus.busy` writes the answer to standard output.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec
import pynvml

from agent.gpus.nvml_api import DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, NOT_SUPPORTED, NvmlApi, code_of
from agent.program import run_within

PROBE: Final = (sys.executable, "-m", "agent.gpus.busy")
ANSWER_BYTES_MAX: Final = 64 * 1024
_NO_GPU: Final = frozenset({LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED})


class Busy(msgspec.Struct, frozen=True):
    """GPUs in use, by their number, and what kept others from being asked."""

    gpus: tuple[int, ...] = ()
    problem: str | None = None


def busy_gpus(nvml: NvmlApi) -> Busy:
    """Ask NVML; with MIG a GPU's processes are those of all its instances."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Busy() if code_of(error) in _NO_GPU else Busy(problem=str(error))
    try:
        return Busy(tuple(index for index in range(nvml.nvmlDeviceGetCount()) if _computes(nvml, index)))
    except nvml.NVMLError as error:
        return Busy(problem=str(error))
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _computes(nvml: NvmlApi, index: int) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(index)))
    except nvml.NVMLError as error:
        if code_of(error) == NOT_SUPPORTED:
            return False
        raise


def busy_within(seconds: float, command: Sequence[str] = PROBE) -> Busy:
    """Ask in a process that ends within `seconds`."""
    ended = run_within(command, seconds, output_bytes_max=ANSWER_BYTES_MAX)
    if ended.status != 0:
        return Busy(problem=f"NVML did not answer within {seconds:g} s" if ended.status is None else "the probe failed")
    try:
        return msgspec.json.decode(ended.output, type=Busy)
    except msgspec.DecodeError as error:
        return Busy(problem=f"the probe wrote no answer: {error}")


def main() -> None:
    """Write this host's answer to standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(busy_gpus(pynvml)))


if __name__ == "__main__":
    main()
