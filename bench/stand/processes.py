"""Programs that the bench starts: each in a process group of its own, which ends with the block that started it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from bench.stand.errors import CannotMeasure

_START_SECONDS_MAX: Final = 60
_POLL_SECONDS: Final = 0.05
_LOG_CHARACTERS: Final = 2000


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, env: Mapping[str, str], cwd: Path, *, stop_seconds_max: float = 10
) -> Iterator[psutil.Process]:
    """Run a program while the block lasts, what it prints in `log`; it sees this process's environment and `env`."""
    with log.open("wb") as output:
        program = subprocess.Popen(  # noqa: S603 - the bench's own programs, without a shell
            command,
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C is for us alone; and what the program starts itself ends with it.
            start_new_session=True,
        )
    try:
        yield psutil.Process(program.pid)
    finally:
        _stop(program, stop_seconds_max)


def wait_until_listening(process: psutil.Process, port: int, log: Path) -> None:
    """Return when the process accepts connections; raises CannotMeasure when it ends or takes too long."""
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        ended = not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        if ended or time.monotonic() > deadline:
            raise CannotMeasure(f"{log.stem} did not start:\n{end_of(log)}")
        time.sleep(_POLL_SECONDS)


def end_of(log: Path) -> str:
    """Return the last lines of what a program printed."""
    return log.read_text(errors="replace")[-_LOG_CHARACTERS:]


def output_of(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, seconds_max: float
) -> str:
    """Run a program to its end and return what it prints; raises CannotMeasure when it fails or takes too long."""
    program = subprocess.Popen(  # noqa: S603 - the bench's own programs, without a shell
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, wrong = program.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"{Path(command[0]).name} was not done after {seconds_max:g} s") from None
    finally:
        _stop(program, 0)
    if program.returncode != 0:
        raise CannotMeasure(f"{Path(command[0]).name} failed:\n{(wrong or printed)[-_LOG_CHARACTERS:]}")
    return printed


def cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    """Return the CPU time that these processes have used; one that has ended counts nothing."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def peak_mib(process: psutil.Process) -> float:
    """Return the largest resident size that the process has had (VmHWM)."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) / 1024


def _stop(program: "subprocess.Popen[bytes] | subprocess.Popen[str]", seconds_max: float) -> None:
    if program.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            program.wait(seconds_max)
    # Also when the program ended by itself: what it left behind is in its group.
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
