import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from agent.client import Connection, connect
from agent.failures import Refused
from agent.introduction import introduction
from agent.inventory import Inventory, inventory_of
from agent.loop import Agent, Timing
from agent.watch import Fingerprint
from agent.wire import Hello
from domain.documents.gpus import Enumeration, GpusSection
from domain.documents.system import SystemSection
from tests.agent.fake_server import TOKEN, FakeServer, until

FAST = Timing(heartbeat=0.02, settle=0.01, rescan=3600, retry_incomplete=0.05, fraction=lambda: 0.01)


class FakeHost:
    def __init__(self) -> None:
        self.vendor = "Example"
        self.boot = "boot-1"
        self.plugged = frozenset({"net eno1"})
        self.enumeration = Enumeration.COMPLETE
        self.collections = 0
        self.hold = threading.Event()
        self.hold.set()

    def collect(self) -> Inventory:
        self.collections += 1
        assert self.hold.wait(10)
        system, gpus = SystemSection(vendor=self.vendor), GpusSection(enumeration=self.enumeration)
        return inventory_of({"system": system, "gpus": gpus})

    def fingerprint(self) -> Fingerprint:
        return self.plugged

    def hello(self) -> Hello:
        return introduction("key", hostname="one", boot_id=self.boot)


@asynccontextmanager
async def running(server: FakeServer, host: FakeHost, timing: Timing = FAST) -> AsyncIterator[asyncio.Task[None]]:
    async with connect(Connection("http://fleet.test", TOKEN), server.transport()) as client:
        task = asyncio.create_task(Agent(client, host, timing).run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_heartbeats_repeat_the_hashes_and_send_nothing_while_nothing_changed() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 5)
    assert server.sections_received == 2
    assert server.only.hellos == 1
    assert host.collections == 1


async def test_heartbeats_tell_the_time_by_the_nodes_clock() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host, replace(FAST, now=lambda: datetime(2026, 1, 2, tzinfo=UTC))):
        await until(lambda: server.nodes and server.only.reports >= 2)
    assert server.only.sent_at == "2026-01-02T00:00:00Z"


async def test_a_change_of_hardware_is_collected_and_reported() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.sections_received == 2)
        host.vendor = "Another"
        host.plugged = frozenset({"net eno1", "pci 0000:18:00.0"})
        await until(lambda: server.sections_received == 3)
    assert b"Another" in server.only.contents["system"]
    assert host.collections == 2


async def test_a_refresh_collects_anew_and_returns_when_the_server_has_it() -> None:
    server, host = FakeServer(), FakeHost()
    async with connect(Connection("http://fleet.test", TOKEN), server.transport()) as client:
        agent = Agent(client, host, replace(FAST, heartbeat=3600))
        task = asyncio.create_task(agent.run())
        await until(lambda: server.sections_received == 2)
        assert agent.node_id == server.only.id
        host.vendor = "Another"
        found = await asyncio.gather(agent.refresh(), agent.refresh())
        assert b"Another" in server.only.contents["system"]
        assert {inventory.digest for inventory in found} == {found[0].digest}
        assert host.collections == 2
        server.refuse_sections = "too long"
        host.vendor = "A third"
        with pytest.raises(Refused, match="does not take"):
            await agent.refresh()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_heartbeats_go_on_while_a_collection_hangs() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.sections_received == 2)
        host.hold.clear()
        host.plugged = frozenset()
        await until(lambda: host.collections == 2)
        reports = server.only.reports
        await until(lambda: server.only.reports >= reports + 5)
        assert host.collections == 2
        host.hold.set()
        await until(lambda: server.only.reports >= reports + 10)


async def test_a_new_boot_is_a_new_session() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 1)
        host.boot = "boot-2"
        await until(lambda: server.only.hello["bootId"] == "boot-2")


async def test_an_incomplete_enumeration_is_looked_at_again_soon() -> None:
    server, host = FakeServer(), FakeHost()
    host.enumeration = Enumeration.INCOMPLETE
    async with running(server, host):
        await until(lambda: server.sections_received == 2)
        host.enumeration = Enumeration.COMPLETE
        await until(lambda: b'"complete"' in server.only.contents["gpus"])
        collections = host.collections
        await until(lambda: server.only.reports >= 20)
    assert host.collections == collections


async def test_a_rescan_comes_without_any_sign() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host, replace(FAST, rescan=0.05)):
        await until(lambda: host.collections >= 3)


async def test_the_agent_comes_back_after_a_restart_of_the_server() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 1)
        server.failing = 503
        seen = server.requests
        await until(lambda: server.requests >= seen + 2)
        server.failing, reports = None, server.only.reports
        await until(lambda: server.only.reports >= reports + 2)
    # It is known there: no second hello.
    assert server.only.hellos == 1
    assert server.sections_received == 2


async def test_an_agent_that_is_told_to_wait_waits_and_keeps_its_session() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 1)
        server.turn_away = 0.05
        await until(lambda: len(server.turned_away) >= 3)
        server.turn_away, reports = None, server.only.reports
        await until(lambda: server.only.reports >= reports + 2)
    assert server.only.hellos == 1
    assert min(after - before for before, after in pairwise(server.turned_away)) >= 0.05


async def test_sections_that_are_turned_away_are_sent_when_a_later_heartbeat_asks() -> None:
    server, host = FakeServer(), FakeHost()
    server.turn_away_sections = True
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 3)
        assert server.only.contents == {}
        server.turn_away_sections = False
        await until(lambda: len(server.only.contents) == 2)
    assert server.only.hellos == 1


async def test_a_server_that_forgot_the_node_is_told_everything_again() -> None:
    server, host = FakeServer(), FakeHost()
    async with running(server, host):
        await until(lambda: server.nodes and server.only.reports >= 1)
        server.forget()
        await until(lambda: server.nodes and len(server.only.contents) == 2)
    assert server.sections_received == 4


async def test_an_agent_that_starts_before_the_server_waits_for_it() -> None:
    server, host = FakeServer(), FakeHost()
    server.failing = 502
    async with running(server, host) as task:
        await until(lambda: server.requests >= 3)
        assert not task.done()
        server.failing = None
        await until(lambda: server.nodes)
    assert host.collections == 1


async def test_a_token_that_is_wrong_from_the_start_ends_the_agent() -> None:
    async with connect(Connection("http://fleet.test", "wrong"), FakeServer().transport()) as client:
        with pytest.raises(Refused, match="token"):
            await Agent(client, FakeHost(), FAST).run()


async def test_a_refused_inventory_is_not_sent_again_until_it_changes() -> None:
    server, host = FakeServer(), FakeHost()
    server.refuse_sections = "section 'system' at vendor: too long"
    with capture_logs() as logs:
        async with running(server, host):
            await until(lambda: server.nodes and server.only.reports >= 5)
            server.refuse_sections = None
            assert server.only.contents == {}
            host.vendor, host.plugged = "Short", frozenset()
            await until(lambda: server.only.contents)
    refusals = [entry for entry in logs if entry["event"] == "inventory refused"]
    assert [entry["reason"] for entry in refusals] == ["section 'system' at vendor: too long"]
    assert TOKEN not in str(logs)


async def test_the_heartbeat_keeps_to_the_lease() -> None:
    server, host = FakeServer(), FakeHost()
    server.lease_seconds = 0
    async with running(server, host, replace(FAST, heartbeat=3600)):
        await until(lambda: server.nodes and server.only.reports >= 3)


async def test_stopping_does_not_wait_for_a_collection_that_hangs() -> None:
    host = FakeHost()
    host.hold.clear()
    started = time.monotonic()
    async with running(FakeServer(), host):
        await until(lambda: host.collections == 1)
    host.hold.set()
    assert time.monotonic() - started < 5


def test_jitter_spreads_a_fleet_around_the_interval() -> None:
    fractions = iter(place / 10 for place in range(10))
    timing = Timing(fraction=lambda: next(fractions))
    spread = [timing.jittered(10) for _ in range(10)]
    assert all(before < after for before, after in pairwise(spread))
    assert 8.9 < spread[0] < spread[-1] < 11.1
