import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from agent.client import Connection, connected
from agent.simulator.client import FleetClient
from agent.simulator.commands import Commands, diagnosed
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.material import Material
from agent.simulator.node import Change, ChangeKind, applied, first_state
from agent.simulator.troubles import Trouble
from tests.agent.fake_server import TOKEN, FakeServer, until
from tests.agent.simulator.test_fleet import Counted

CONNECTION = Connection("http://fleet.test", TOKEN)
H100 = first_state(Material(1, 0))


@asynccontextmanager
async def told(server: FakeServer, nodes: int) -> AsyncIterator[Fleet]:
    """Give a fleet that was reported and takes commands."""
    async with connected(FleetClient, CONNECTION, server.transport()) as client:
        fleet = Fleet(client, 1, nodes, Pace())
        await fleet.report(Counted())
        working = asyncio.create_task(Commands(client, fleet, Pace()).run())
        try:
            yield fleet
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def test_a_fleet_at_rest_asks_for_no_commands_and_says_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.simulator.commands.POLL_SECONDS", 0.001)
    monkeypatch.setattr("agent.simulator.fleet.HEARTBEAT_SECONDS", 0.01)
    server = FakeServer()
    async with told(server, 30) as fleet:
        alive = asyncio.create_task(fleet.keep_alive())
        await until(lambda: min(node.reports for node in server.nodes.values()) >= 3)
        alive.cancel()
    assert server.asked_for_commands == []
    assert {len(node.statuses) for node in server.nodes.values()} == {1}, "that of its start"


async def test_only_who_is_troubled_is_asked_for_until_it_is_well_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.simulator.commands.POLL_SECONDS", 0.001)
    server = FakeServer()
    async with told(server, 30) as fleet:
        begun = Change(7, ChangeKind.TROUBLE, 2, Trouble.GSP_TIMEOUT)
        await fleet.happen([begun])
        await until(lambda: len(server.asked_for_commands) >= 3)
        node_id = fleet.node(7).node_id
        assert set(server.asked_for_commands) == {node_id}
        _, status = server.nodes[node_id].statuses
        assert [xid["code"] for xid in status["xids"]] == [119]
        await fleet.happen([replace(begun, kind=ChangeKind.GPU_RESET, trouble=None)])
        assert server.nodes[node_id].statuses[-1]["xids"] == []
        assert not fleet.troubled


async def test_a_silent_node_is_not_heard_of_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.simulator.commands.POLL_SECONDS", 0.001)
    monkeypatch.setattr("agent.simulator.fleet.HEARTBEAT_SECONDS", 0.01)
    server = FakeServer()
    async with told(server, 5) as fleet:
        await fleet.happen([Change(2, ChangeKind.TROUBLE, trouble=Trouble.SILENCE)])
        silent, other = (server.nodes[fleet.node(index).node_id] for index in (2, 3))
        alive = asyncio.create_task(fleet.keep_alive())
        await until(lambda: other.reports >= 5)
        assert (silent.reports, silent.hellos) == (0, 1)
        assert server.asked_for_commands == []
        await fleet.happen([Change(2, ChangeKind.REBOOTED)])
        assert silent.hellos == 2
        await until(lambda: silent.reports >= 2)
        alive.cancel()


async def test_a_server_that_forgot_a_node_is_told_anew_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.simulator.fleet.HEARTBEAT_SECONDS", 0.01)
    server = FakeServer()
    async with told(server, 5) as fleet:
        await fleet.happen([Change(0, ChangeKind.TROUBLE, 1, Trouble.DOUBLE_BIT_ERROR)])
        server.forget()
        alive = asyncio.create_task(fleet.keep_alive())
        await until(lambda: any(node.statuses for node in server.nodes.values()))
        alive.cancel()
        assert server.nodes[fleet.node(0).node_id].statuses[-1]["xids"][0]["code"] == 48


def test_a_diagnosis_is_of_the_node_as_it_is() -> None:
    assert diagnosed(Material(1, 0), H100, 8).result == {
        "passed": True,
        "gpuCount": 8,
        "driverVersion": H100.versions[0],
        "failures": [],
    }
    short = applied(H100, Change(0, ChangeKind.GPU_LOST, 7))
    pending = applied(short, Change(0, ChangeKind.TROUBLE, 0, Trouble.REMAP_PENDING))
    found = diagnosed(Material(1, 0), pending, 8).result
    assert found is not None
    assert [failure["check"] for failure in found["failures"]] == ["gpu.count", "row-remap.pending", "xid.recent"]


async def test_a_simulator_that_is_started_again_tells_that_what_was_wrong_is_over_in_another_boot() -> None:
    server = FakeServer()
    async with connected(FleetClient, CONNECTION, server.transport()) as client:
        for run in ("first", "second"):
            fleet = Fleet(client, 1, 1, Pace(), run)
            await fleet.report(Counted())
            await fleet.happen([Change(0, ChangeKind.TROUBLE, 3, Trouble.FALLEN_OFF)])
    at_rest, wrong, at_rest_again, wrong_again = server.only.statuses
    assert at_rest["xids"] == at_rest_again["xids"] == []
    assert wrong["xids"][0]["sequence"] == wrong_again["xids"][0]["sequence"]
    assert wrong["xids"][0]["bootId"] != wrong_again["xids"][0]["bootId"] == server.only.hello["bootId"]
