"""Several API processes behind one listener."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.program import BIN, free_port, start
from tests.support.waiting import until
from web.processes import Processes, StartRefused, beat
from web.server import open_listener
from web.settings import Settings

SLOW = 60.0
"""Seconds that a program may take to start beside all else that this machine does."""


def _client(port: int) -> httpx.AsyncClient:
    """Return a client that makes a connection for each request: any process may take it."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=SLOW)


async def _answered(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(SLOW):
        while True:
            try:
                if (await http.get("/readyz")).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


async def test_a_process_that_is_killed_is_started_again_and_all_stop_together(database_url: str) -> None:
    port = free_port()
    env = {"DATABASE_URL": database_url, "FLEETGRAPH_PORT": str(port)}
    process = await start("fleetgraph", "serve", "--processes", "2", "--no-reconcile", env=env)
    parent = psutil.Process(process.pid)
    try:
        async with _client(port) as http:
            await _answered(http)
            before = parent.children()
            assert len(before) == 2
            before[0].kill()
            for _ in range(10):  # a connection that comes meanwhile waits at worst
                assert (await http.get("/readyz")).status_code == httpx.codes.OK
            await until(lambda: len(parent.children()) == 2 and before[0] not in parent.children())
            assert before[1].is_running()
        after = parent.children()
        process.terminate()
        assert await asyncio.wait_for(process.wait(), SLOW) == 0
        assert not any(child.is_running() for child in after)
    finally:
        if process.returncode is None:
            process.kill()


async def test_a_process_tells_its_parent_that_it_turns_and_stops_when_there_is_none(database_url: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, open_listener(Settings(port=0)) as listener:
        fds = (listener.fileno(), theirs.fileno())
        process = await asyncio.create_subprocess_exec(
            *(BIN / "fleetgraph", "serve", "--no-reconcile", "--fd", str(fds[0]), "--parent-fd", str(fds[1])),
            pass_fds=fds,
            env={**os.environ, "DATABASE_URL": database_url},
            stderr=asyncio.subprocess.DEVNULL,
        )
        theirs.close()
        ours.settimeout(SLOW)
        assert await asyncio.to_thread(ours.recv, 1) == b"."
    assert await asyncio.wait_for(process.wait(), SLOW) == 0


async def test_a_process_whose_parent_is_stopped_goes_on() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    theirs.settimeout(0)
    with ours:
        with suppress(BlockingIOError):
            while True:
                theirs.send(b"." * 4096)
        stop = asyncio.Event()
        beating = asyncio.create_task(beat(theirs.detach(), stop))
        await asyncio.sleep(0)
        assert not beating.done()
        assert not stop.is_set()
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that does nothing but tell its parent that it turns, unless it is told to refuse."""
    file = tmp_path / "fleetgraph"
    file.write_text(
        f"#!{sys.executable} -S\n"
        "import os, sys, time\n"
        "parent = int(sys.argv[sys.argv.index('--parent-fd') + 1])\n"
        "if 'refuse' in sys.argv:\n"
        "    sys.exit(1)\n"
        "while True:\n"
        "    os.write(parent, b'.')\n"
        "    time.sleep(0.01)\n"
    )
    file.chmod(0o755)
    return file


async def test_what_keeps_processes_from_starting_ends_the_parent(program: Path) -> None:
    with open_listener(Settings(port=0)) as listener, pytest.raises(ExceptionGroup) as refused:
        await Processes(listener, ("refuse",), {}, asyncio.Event(), program=program).run(1)
    assert refused.group_contains(StartRefused)


async def test_a_process_that_falls_silent_is_replaced(program: Path) -> None:
    stop = asyncio.Event()
    us = psutil.Process()
    before = set(us.children())

    def ours() -> list[psutil.Process]:
        return [child for child in us.children() if child not in before]

    with open_listener(Settings(port=0)) as listener:
        processes = Processes(listener, (), {}, stop, silence_seconds_max=1.0, program=program)
        running = asyncio.create_task(processes.run(1))
        await until(lambda: processes._proven)
        (first,) = ours()
        os.kill(first.pid, signal.SIGSTOP)
        await until(lambda: bool(ours()) and first not in ours())
        stop.set()
        await running
    assert ours() == []
