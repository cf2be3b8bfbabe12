"""Hints over every backend, and what happens when the backend dies."""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from db.hints import Hints
from tests.support.program import free_port
from tests.support.waiting import until


class Redis:
    """A Redis server of the test's own, on a port that stays the same when it is started again."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        arguments = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self.process = subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL, cwd="/")
        for _ in range(100):
            assert self.process.poll() is None
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        pytest.fail("redis-server does not listen")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def redis() -> Iterator[Redis]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server on this machine (Debian's package redis-server)")
    server = Redis(program)
    server.start()
    yield server
    server.kill()


async def _heard_after_publishing(url: str) -> None:
    publisher, listener = Hints(url), Hints(url)
    heard: list[int] = []
    running = [
        asyncio.create_task(publisher.run(lambda _position: None)),
        asyncio.create_task(listener.run(heard.append)),
    ]
    try:
        await until(lambda: publisher.connected and listener.connected)
        await publisher.publish(7)
        await until(lambda: heard == [7])
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_a_hint_crosses_processes_over_postgres(database_url: str) -> None:
    await _heard_after_publishing(database_url)


async def test_a_hint_crosses_processes_over_redis(redis: Redis) -> None:
    await _heard_after_publishing(redis.url)


# broadcaster does not close what it has open to a server that died.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_hints_come_back_after_redis_did(redis: Redis) -> None:
    hints = Hints(redis.url)
    heard: list[int] = []
    running = asyncio.create_task(hints.run(heard.append))
    try:
        await until(lambda: hints.connected)
        redis.kill()
        await hints.publish(1)  # fails, is logged, and loses no event: the log has it
        redis.start()
        async with asyncio.timeout(10):
            while 2 not in heard:  # any single hint may be lost while the connection is made anew
                await hints.publish(2)
                await asyncio.sleep(0.05)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_publishing_without_a_connection_is_no_error() -> None:
    await Hints("memory://").publish(1)
