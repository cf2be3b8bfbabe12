"""The made-up fleet at a real server: what is wrong with it is seen there, and its nodes do what they are told."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent.client import Connection, connected
from agent.simulator.client import FleetClient
from agent.simulator.commands import Commands
from agent.simulator.demo import Demo
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.gpus import gpu_uuid
from agent.simulator.node import Change, ChangeKind, hostname
from agent.simulator.operator import Operator
from agent.simulator.plot import NODES_MIN, cast_of
from agent.simulator.troubles import Trouble
from tests.support.server import Client, RunningServer
from tests.support.waiting import until, until_seen

ISSUE = "mutation ($input: CommandInput!) { issueCommand(input: $input) { id } }"
COMMAND = "query ($id: ID!) { command(id: $id) { state reason result } }"
NODE = "query ($id: ID!) { computeNode(id: $id) { bootId } }"
DEVICE = """query ($id: ID!) { device(id: $id) { healthy health { source cause reason } } }"""
CLEAR = "mutation ($id: ID!) { clearDeviceHealth(deviceId: $id) { healthy } }"


class Uncounted:
    def reported(self, count: int) -> None: ...

    def applied(self, count: int) -> None: ...


async def soon(_seconds: float) -> None:
    await asyncio.sleep(0.01)


@asynccontextmanager
async def living(address: str, token: str, nodes: int) -> AsyncIterator[Fleet]:
    pace = Pace(sleep=soon)
    async with connected(FleetClient, Connection(address, token)) as client:
        fleet = Fleet(client, 1, nodes, pace)
        await fleet.report(Uncounted())
        working = asyncio.create_task(Commands(client, fleet, pace).run())
        try:
            yield fleet
            assert not working.done()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def told(client: Client, node_id: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    given = {"nodeId": node_id, "kind": kind, "key": kind, "payload": payload}
    command_id = (await client.data(ISSUE, input=given))["issueCommand"]["id"]
    found: dict[str, Any] = {}

    async def is_finished() -> bool:
        found.update((await client.data(COMMAND, id=command_id))["command"])
        return found["state"] not in {"PENDING", "ACKNOWLEDGED", "RUNNING"}

    await until_seen(is_finished)
    return found


async def test_made_up_nodes_do_what_they_are_told(served: tuple[RunningServer, str]) -> None:
    server, address = served
    operator = server.operator
    async with living(address, server.agent.token, 2) as fleet:
        node_id = fleet.node(0).node_id
        booted = (await operator.data(NODE, id=node_id))["computeNode"]["bootId"]
        refreshed = await told(operator, node_id, "inventory.refresh", {})
        assert (refreshed["state"], refreshed["result"]) == ("SUCCEEDED", {"digest": fleet.node(0).digest})
        looked = await told(operator, node_id, "diag.nvml", {"gpuCount": 9})
        assert looked["result"]["failures"][0]["check"] == "gpu.count"
        await fleet.happen([Change(0, ChangeKind.TROUBLE, 3, Trouble.REMAP_PENDING)])
        uuid = gpu_uuid(fleet.material(0), fleet.node(0).state, 3)
        reset = await told(operator, node_id, "gpu.reset", {"deviceId": uuid})
        assert (reset["state"], reset["result"]["healthy"]) == ("SUCCEEDED", True)
        assert not fleet.node(0).state.troubles
        rebooted = await told(operator, node_id, "node.reboot", {})
        assert rebooted["state"] == "SUCCEEDED"
        boot = (await operator.data(NODE, id=node_id))["computeNode"]["bootId"]
        assert boot == rebooted["result"]["bootId"] != booted


async def test_a_fault_of_a_made_up_gpu_is_quarantined_until_its_operator_clears_it(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    async with living(address, server.agent.token, 1) as fleet:
        uuid = gpu_uuid(fleet.material(0), fleet.node(0).state, 2)
        await fleet.happen([Change(0, ChangeKind.TROUBLE, 2, Trouble.DOUBLE_BIT_ERROR)])
        found = (await server.operator.data(DEVICE, id=uuid))["device"]
        assert found["healthy"] is False
        assert [(each["source"], each["cause"]) for each in found["health"]] == [("XID", "Xid48")]
        assert (await server.operator.data(CLEAR, id=uuid))["clearDeviceHealth"] == {"healthy": True}
        # The agent tells of it as long as it is in its log: that is no news.
        await fleet.happen([Change(0, ChangeKind.TROUBLE, trouble=Trouble.REBOOT_REQUIRED)])
        assert (await server.operator.data(DEVICE, id=uuid))["device"]["healthy"] is True


async def test_the_demo_tells_what_it_plays_and_what_the_server_makes_of_it(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    hasty = Pace(clock=lambda: 100 * time.monotonic(), sleep=lambda seconds: asyncio.sleep(seconds / 100))
    lines: list[str] = []
    async with (
        living(address, server.agent.token, NODES_MIN) as fleet,
        connected(Operator, Connection(address, server.operator.token)) as operator,
    ):
        cast = cast_of(NODES_MIN)
        first = cast.training[0]
        device = f"{hostname(first)}: {gpu_uuid(fleet.material(first), fleet.node(first).state, 0)}"
        playing = asyncio.create_task(Demo(fleet, operator, cast, hasty, lines.append).run())
        await until(lambda: f"  server: {device} is healthy again (cleared)" in lines or playing.done())
        assert f"  server: {device} is quarantined (Xid48)" in lines
        await until(lambda: any("Xid79 is true" in line for line in lines) or playing.done())
        assert not playing.done()
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
    assert f"Xid 48 on GPU 0 of {hostname(first)}, which its job keeps" in lines
