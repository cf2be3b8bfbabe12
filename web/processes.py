"""Several API processes behind one listener: each is started again when it ends, and all stop together."""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

BEAT_SECONDS: Final = 1.0
SILENCE_SECONDS_MAX: Final = 30.0
"""How long a process may say nothing: one that is stopped or stuck takes no requests and keeps its clients waiting."""
PROGRAM: Final = Path(sys.executable).with_name("fleetgraph")
_STOP_SECONDS_MAX: Final = 15.0
_SETTLED_SECONDS: Final = 10.0
_BACKOFF_SECONDS_MAX: Final = 5.0
_REFUSED: Final = 1

_log = structlog.get_logger("processes")


class StartRefused(RuntimeError):  # noqa: N818 - the process has said why
    """A process could not start, for a reason that starting it again does not change."""


@dataclass(slots=True)
class Processes:
    """`count` times `fleetgraph serve` with these arguments on a listener that this process opened.

    The listener is shared: who is stopped or restarts takes no connection away from the others.
    """

    listener: socket.socket
    arguments: Sequence[str]
    env: Mapping[str, str]
    stop: asyncio.Event
    silence_seconds_max: float = SILENCE_SECONDS_MAX
    program: Path = PROGRAM
    _proven: bool = False

    async def run(self, count: int) -> None:
        """Run them until `stop` is set; raises StartRefused when they cannot even start."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(count):
                tasks.create_task(self._keep())

    async def _keep(self) -> None:
        backoff = 0.1
        while not self.stop.is_set():
            began = time.monotonic()
            status = await self._run_one()
            if self.stop.is_set():
                return
            if status == _REFUSED and not self._proven:
                raise StartRefused("a process could not start")
            if time.monotonic() - began > _SETTLED_SECONDS:
                backoff = 0.1
            _log.warning("an API process ended; starting another", status=status, after_seconds=backoff)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), backoff)
            backoff = min(backoff * 2, _BACKOFF_SECONDS_MAX)

    async def _run_one(self) -> int:
        """Run one to its end and return its status; it ends when we do, as the other end of its socket closes."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    self.program,
                    "serve",
                    *self.arguments,
                    *("--fd", str(self.listener.fileno()), "--parent-fd", str(theirs.fileno())),
                    pass_fds=(self.listener.fileno(), theirs.fileno()),
                    env={**os.environ, **self.env},
                    start_new_session=True,  # Ctrl-C reaches it through us
                )
            try:
                await self._watch(process, ours)
            finally:
                await _end(process)
            return process.returncode or 0

    async def _watch(self, process: asyncio.subprocess.Process, beats: socket.socket) -> None:
        """Return when the process has ended, fell silent or is to stop."""
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self.stop.wait())
        silent = asyncio.create_task(self._silence(beats))
        try:
            await asyncio.wait({ended, stopping, silent}, return_when=asyncio.FIRST_COMPLETED)
            if silent.done() and not ended.done():
                _log.error("an API process does not answer; killing it", process=process.pid)
                process.kill()
        finally:
            for task in (ended, stopping, silent):
                task.cancel()
            await asyncio.gather(ended, stopping, silent, return_exceptions=True)

    async def _silence(self, beats: socket.socket) -> None:
        """Return when a process that has served says nothing for too long."""
        beats.settimeout(0)
        loop = asyncio.get_running_loop()
        seconds_max = None
        while True:
            try:
                async with asyncio.timeout(seconds_max):
                    said = await loop.sock_recv(beats, 4096)
            except TimeoutError:
                return
            if not said:  # it is on its way out
                await loop.create_future()
            self._proven, seconds_max = True, self.silence_seconds_max


async def beat(parent_fd: int, stop: asyncio.Event) -> None:
    """Tell the parent that this process turns, until cancelled; when there is no parent any more, stop."""
    with socket.socket(fileno=parent_fd) as parent:
        parent.settimeout(0)
        while True:
            try:
                with suppress(BlockingIOError):  # a parent that is stopped reads nothing
                    parent.send(b".")
            except OSError:
                stop.set()
                return
            await asyncio.sleep(BEAT_SECONDS)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS_MAX)
    except TimeoutError:
        process.kill()
        await process.wait()
