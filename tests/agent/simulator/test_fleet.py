import asyncio
from itertools import islice

import pytest

from agent.client import Connection, connect
from agent.failures import NotApplied, Unreachable
from agent.inventory import inventory_of
from agent.simulator.changes import changes
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.material import Material
from agent.simulator.node import identity_key
from agent.simulator.sections import sections_of
from tests.agent.fake_server import TOKEN, FakeServer, until

CONNECTION = Connection("http://fleet.test", TOKEN)


class Counted:
    def __init__(self) -> None:
        self.counts = {"reported": 0, "applied": 0}

    def reported(self, count: int) -> None:
        self.counts["reported"] += count

    def applied(self, count: int) -> None:
        self.counts["applied"] += count


async def test_a_fleet_is_reported_and_applied_and_counted() -> None:
    server, meter = FakeServer(), Counted()
    server.polls_until_applied = 2
    async with connect(CONNECTION, server.transport()) as client:
        summary = await Fleet(client, 1, 120, Pace()).report(meter)
    assert (summary.nodes, summary.sections) == (120, 960)
    assert meter.counts == {"reported": 120, "applied": 120}
    assert len(server.nodes) == 120
    assert all(len(node.contents) == 8 for node in server.nodes.values())
    assert "120 nodes applied, 960 sections sent" in str(summary)


async def test_a_second_run_of_the_seed_sends_nothing() -> None:
    server = FakeServer()
    async with connect(CONNECTION, server.transport()) as client:
        await Fleet(client, 1, 30, Pace()).report(Counted())
        again = await Fleet(client, 1, 30, Pace()).report(Counted())
    assert again.sections == 0
    assert len(server.nodes) == 30


async def test_requests_are_few_and_bounded_in_number() -> None:
    server = FakeServer()
    async with connect(CONNECTION, server.transport()) as client:
        await Fleet(client, 1, 200, Pace()).report(Counted())
    # A hello each, and for sections and statuses one request for many nodes.
    assert server.requests <= 200 + 20


async def test_changes_leave_the_server_with_what_the_sequence_says() -> None:
    server = FakeServer()
    async with connect(CONNECTION, server.transport()) as client:
        fleet = Fleet(client, 5, 10, Pace())
        await fleet.report(Counted())
        happened = list(islice(changes(5, 10), 60))
        for change, _ in happened:
            await fleet.happen([change])
    for state in {state.index: state for _, state in happened}.values():
        material = Material(5, state.index)
        node = server.nodes[server.keys[identity_key(material)]]
        expected = inventory_of(sections_of(material, state))
        assert node.hashes == {entry.name: entry.sha256 for entry in expected.hashes}
        assert all(node.contents[name] == content for name, content in expected.contents.items())


async def test_a_living_fleet_is_heard_and_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.simulator.fleet.HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr("agent.simulator.fleet.TICK_SECONDS", 0.01)
    server = FakeServer()
    async with connect(CONNECTION, server.transport()) as client:
        fleet = Fleet(client, 1, 10, Pace())
        await fleet.report(Counted())
        before = server.sections_received
        living = [asyncio.create_task(fleet.keep_alive()), asyncio.create_task(fleet.change(200))]
        await until(lambda: server.sections_received >= before + 20)
        await until(lambda: min(node.reports for node in server.nodes.values()) >= 3)
        server.forget()
        await until(lambda: len(server.nodes) == 10 and all(len(node.contents) == 8 for node in server.nodes.values()))
        assert not any(task.done() for task in living)
        for task in living:
            task.cancel()
        await asyncio.gather(*living, return_exceptions=True)


async def test_a_server_that_was_never_there_is_told_at_once() -> None:
    server = FakeServer()
    server.failing = 503
    async with connect(CONNECTION, server.transport()) as client:
        with pytest.raises(Unreachable):
            await Fleet(client, 1, 200, Pace()).report(Counted())


async def test_a_restart_of_the_server_is_outlived() -> None:
    server = FakeServer()
    async with connect(CONNECTION, server.transport()) as client:
        reporting = asyncio.create_task(Fleet(client, 1, 100, Pace(fraction=lambda: 0.02)).report(Counted()))
        await until(lambda: len(server.nodes) >= 20)
        server.failing = 502
        await asyncio.sleep(0.2)
        server.failing = None
        summary = await reporting
    assert summary.nodes == len(server.nodes) == 100


async def test_a_node_that_cannot_be_applied_is_named() -> None:
    server = FakeServer()
    server.apply_error = "two owners"
    async with connect(CONNECTION, server.transport()) as client:
        with pytest.raises(NotApplied, match=r"node_\d+: two owners"):
            await Fleet(client, 1, 3, Pace()).report(Counted())
