"""Commands through the agent's own program, against a server with a listener."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.program import start
from tests.support.server import Client, RunningServer
from tests.support.waiting import until_seen

NODES = "{ nodes { nodes { id inventoryStatus { state } } } }"
WEIGHTS = """
query ($id: ID!) {
  computeNode(id: $id) {
    latestSnapshot { digest sections { images { weights { path } } } }
    snapshots { totalCount }
    commands { nodes { sequence state } }
  }
}
"""
REFRESH = "mutation ($id: ID!) { refreshInventory(id: $id) { id } }"
ISSUE = "mutation ($input: CommandInput!) { issueCommand(input: $input) { id } }"
COMMAND = "query ($id: ID!) { command(id: $id) { state reason result } }"


@asynccontextmanager
async def agent_process(address: str, token: str, *arguments: str) -> AsyncIterator[None]:
    reach = ("--server", address, "--token", token, "--spread", "0")
    process = await start("fleetgraph-agent", "run", *reach, *arguments, env={})
    try:
        yield
    finally:
        process.terminate()
        async with asyncio.timeout(10):
            await process.wait()


async def applied_node(client: Client) -> str:
    found: list[dict[str, Any]] = []

    async def is_applied() -> bool:
        found[:] = (await client.data(NODES))["nodes"]["nodes"]
        return bool(found) and found[0]["inventoryStatus"]["state"] == "APPLIED"

    await until_seen(is_applied)
    return str(found[0]["id"])


async def finished(client: Client, command_id: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_finished() -> bool:
        found.update((await client.data(COMMAND, id=command_id))["command"])
        return found["state"] not in {"PENDING", "ACKNOWLEDGED", "RUNNING"}

    await until_seen(is_finished)
    return found


async def test_the_agent_refreshes_and_diagnoses_at_once_and_reboots_nothing_by_default(
    served: tuple[RunningServer, str], tmp_path: Path
) -> None:
    server, address = served
    weights, state = tmp_path / "weights", tmp_path / "state"
    weights.mkdir()
    options = ("--identity", "commanded", "--state-dir", str(state), "--weights-dir", str(weights))
    async with agent_process(address, server.agent.token, *options):
        node_id = await applied_node(server.operator)
        (weights / "model.safetensors").write_bytes(b"x")
        issued = (await server.operator.data(REFRESH, id=node_id))["refreshInventory"]["id"]
        refreshed = await finished(server.operator, issued)
        assert refreshed["state"] == "SUCCEEDED"
        for kind, expected in (
            ("diag.nvml", {"state": "SUCCEEDED", "reason": None}),
            ("node.reboot", {"state": "FAILED", "reason": "unsupported"}),
        ):
            given = {"nodeId": node_id, "kind": kind, "key": kind}
            issued = (await server.operator.data(ISSUE, input=given))["issueCommand"]["id"]
            found = await finished(server.operator, issued)
            assert {"state": found["state"], "reason": found["reason"]} == expected
            assert found["result"] is None or set(found["result"]) >= {"passed", "failures", "gpuCount"}

        async def is_shown() -> bool:
            node = (await server.operator.data(WEIGHTS, id=node_id))["computeNode"]
            snapshot = node["latestSnapshot"]
            return bool(snapshot["digest"] == refreshed["result"]["digest"]) and node["snapshots"]["totalCount"] == 2

        await until_seen(is_shown)
    node = (await server.operator.data(WEIGHTS, id=node_id))["computeNode"]
    paths = [each["path"] for each in node["latestSnapshot"]["sections"]["images"]["weights"]]
    assert [Path(path).name for path in paths] == ["model.safetensors"]
    assert (state / "commands.json").stat().st_mode & 0o777 == 0o600
