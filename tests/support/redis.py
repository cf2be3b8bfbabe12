"""A Redis server of a test's own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.program import free_port


class Redis:
    """A Redis server on a port that stays the same when it is started again."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        arguments = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self.process = subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL, cwd="/")
        for _ in range(100):
            assert self.process.poll() is None
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        pytest.fail("redis-server does not listen")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@contextmanager
def running_redis() -> Iterator[Redis]:
    """Run one while the block lasts; skips the test where there is no program."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine (Debian's package redis-server)")
    server = Redis(program)
    server.start()
    try:
        yield server
    finally:
        server.kill()
