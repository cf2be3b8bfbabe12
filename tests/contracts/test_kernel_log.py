"""A kernel log that the agent's own program follows, from its lines to what operators read of the node."""

import json
from pathlib import Path
from typing import Any, Final

from tests.contracts.test_commands import agent_process, applied_node
from tests.support.server import Client, RunningServer
from tests.support.waiting import until_seen

NODE: Final = """
query ($id: ID!) {
  computeNode(id: $id) {
    noScheduleReasons generation observedGeneration
    conditions { type status }
    faults { code kind sequence count address policy condition causedBy }
  }
}
"""
FELL: Final = "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
REMOVED: Final = "NVRM: Xid (PCI:0000:18:00): 45, pid=4242, name=python3, Ch 00000008"
TIMED_OUT: Final = "NVRM: Xid (PCI:0000:3b:00): 119, pid=77, name=python3, Timeout after 45s of waiting for RPC"


def frame(sequence: int, message: str, priority: int = 4) -> str:
    return f"{priority},{sequence},{sequence * 1_000_000},-;{message}\n"


async def seen(client: Client, node_id: str, codes: list[int], newest: str | None = None) -> dict[str, Any]:
    """Return the node when it has faults of these codes, in the order of the log."""
    found: dict[str, Any] = {}

    async def is_seen() -> bool:
        found.update((await client.data(NODE, id=node_id))["computeNode"])
        found["faults"].sort(key=lambda fault: int(fault["sequence"]))
        is_newest = newest is None or newest == found["faults"][-1]["sequence"]
        return [fault["code"] for fault in found["faults"]] == codes and is_newest

    await until_seen(is_seen)
    return found


async def test_faults_reach_operators_at_once_survive_restarts_and_count_once(
    served: tuple[RunningServer, str], tmp_path: Path
) -> None:
    server, address = served
    log, state = tmp_path / "kmsg", tmp_path / "state"
    log.write_text(frame(900, TIMED_OUT, priority=12) + frame(901, FELL) + frame(902, REMOVED))
    options = ("--identity", "followed", "--state-dir", str(state), "--kernel-log", str(log))
    async with agent_process(address, server.agent.token, *options):
        node_id = await applied_node(server.operator)
        node = await seen(server.operator, node_id, [79, 45])
        assert "Xid79" in node["noScheduleReasons"]
        assert (node["generation"], node["observedGeneration"]) == (1, 1)
        fell, removed = node["faults"]
        assert fell == {
            "code": 79,
            "kind": "XID",
            "sequence": "901",
            "count": "1",
            "address": "0000:18:00",
            "policy": "NODE_NO_SCHEDULE",
            "condition": "Xid79",
            "causedBy": None,
        }
        assert (removed["policy"], removed["causedBy"]) == ("EVENT", "Xid79")
        with log.open("a") as opened:
            opened.write(frame(903, TIMED_OUT))
        await seen(server.operator, node_id, [79, 45, 119])
    assert (state / "faults.json").stat().st_mode & 0o777 == 0o600
    # The log has lost what came first; the agent has not.
    log.write_text(frame(903, TIMED_OUT) + frame(1000, TIMED_OUT))
    async with agent_process(address, server.agent.token, *options):
        node = await seen(server.operator, node_id, [79, 45, 119], newest="1000")
        assert [fault["count"] for fault in node["faults"]] == ["1", "1", "2"]
    kept = json.loads((state / "faults.json").read_text())
    assert [(each["fault"]["code"], each["sequence"]) for each in kept["faults"]] == [(79, 901), (45, 902), (119, 1000)]
