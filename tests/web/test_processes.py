"""Several API processes behind one listener."""

import asyncio
import os
import signal
import socket

import httpx
import psutil
import pytest

from tests.support.program import free_port, start
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


async def test_a_process_whose_parent_is_gone_stops() -> None:
    ours, theirs = socket.socketpair()
    stop = asyncio.Event()
    beating = asyncio.create_task(beat(theirs.detach(), stop))
    await asyncio.to_thread(ours.recv, 1)
    assert not stop.is_set()
    ours.close()
    await asyncio.wait_for(stop.wait(), 10)
    await beating


async def test_what_keeps_processes_from_starting_ends_the_parent() -> None:
    with open_listener(Settings(port=0)) as listener, pytest.raises(ExceptionGroup) as refused:
        await Processes(listener, (), {"FLEETGRAPH_LOG_LEVEL": "loud"}, asyncio.Event()).run(1)
    assert refused.group_contains(StartRefused)


async def test_a_process_that_falls_silent_is_replaced(database_url: str) -> None:
    stop = asyncio.Event()
    us = psutil.Process()
    before = set(us.children())

    def ours() -> list[psutil.Process]:
        return [child for child in us.children() if child not in before]

    with open_listener(Settings(port=0)) as listener:
        listener.listen()
        env = {"DATABASE_URL": database_url}
        running = asyncio.create_task(Processes(listener, ("--no-reconcile",), env, stop, 3.0).run(1))
        async with _client(listener.getsockname()[1]) as http:
            await _answered(http)
            (first,) = ours()
            os.kill(first.pid, signal.SIGSTOP)
            await until(lambda: bool(ours()) and first not in ours())
            await _answered(http)
        stop.set()
        await running
    assert ours() == []
