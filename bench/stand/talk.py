"""Processes of a bench that are told what to do and answer, a line of JSON each way."""

import asyncio
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from bench.stand.errors import CannotMeasure
from bench.stand.processes import end_of

_ROOT: Final = Path(__file__).parents[2]
_STOP_SECONDS_MAX: Final = 5

Words = dict[str, Any]


class Helper:
    """A running process that answers; `name` is its module."""

    def __init__(self, program: "subprocess.Popen[bytes]", name: str, log: Path) -> None:
        self.process = psutil.Process(program.pid)
        self._program = program
        self._name = name
        self._log = log
        self._heard = b""

    def ask(self, *, seconds_max: float = 60, **words: Any) -> Words:  # noqa: ANN401 - whatever is JSON
        """Tell it something and return what it answers; raises CannotMeasure when it does not."""
        self.tell(**words)
        return self.hear(seconds_max)

    def tell(self, **words: Any) -> None:  # noqa: ANN401 - whatever is JSON
        """Tell it something; what it answers is heard later."""
        assert self._program.stdin is not None
        try:
            self._program.stdin.write(json.dumps(words).encode() + b"\n")
            self._program.stdin.flush()
        except BrokenPipeError:
            raise self._failed("ended") from None

    def hear(self, seconds_max: float) -> Words:
        """Return its next answer; raises CannotMeasure."""
        output = self._program.stdout
        assert output is not None
        deadline = time.monotonic() + seconds_max
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._failed(f"did not answer within {seconds_max:g} s")
                more = os.read(output.fileno(), 65_536)
                if not more:
                    raise self._failed("ended")
                self._heard += more
        line, self._heard = self._heard.split(b"\n", 1)
        said: Words = json.loads(line)
        if wrong := said.get("wrong"):
            raise self._failed(wrong)
        return said

    def _failed(self, how: str) -> CannotMeasure:
        return CannotMeasure(f"{self._name}: {how}\n{end_of(self._log)}".strip())


@contextmanager
def helper(module: str, log: Path, *arguments: str) -> Iterator[Helper]:
    """Run a module of the bench while the block lasts; what it prints on standard error is in `log`."""
    with log.open("wb") as wrong:
        program = subprocess.Popen(  # noqa: S603 - the bench's own modules
            (sys.executable, "-m", module, *arguments),
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=wrong,
            start_new_session=True,
        )
    with program:
        try:
            yield Helper(program, module, log)
        finally:
            program.terminate()
            try:
                program.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                program.kill()


async def told() -> AsyncIterator[Words]:
    """Yield what this process is told, in a helper."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    while line := await reader.readline():
        yield json.loads(line)


def answer(words: Mapping[str, Any]) -> None:
    """Answer, in a helper."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()
