"""A node that goes silent and comes back, from its agent's heartbeats to what clients follow, read and are refused."""

from typing import Any, Final

from domain.liveness import Patience
from reconcilers.liveness import liveness, reachable
from reconcilers.loop import run
from tests.support.server import RECORD, RunningServer, hash_of, report, section
from tests.support.silence import listened, silence
from tests.support.socket import open_socket
from web.app import utc_now
from web.server import background

GPUS: Final = {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-a1b2"}]}}
FOLLOW: Final = """
subscription ($after: Cursor, $nodes: [ID!]) {
  nodeConditionChanged(after: $after, nodeIds: $nodes, types: ["NodeUnreachable", "MPSDown", "ForeignGpuExposure"]) {
    condition status reason noSchedule node { connectivity state schedulable noScheduleReasons }
  }
}
"""
STATUS: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { code } } }"
ALLOCATE: Final = """
mutation ($shard: ID!) { allocate(input: {shardId: $shard, deviceIds: ["GPU-a1b2"]}) { devices { id } } }
"""
FLEET: Final = """
{ lost: nodes(filter: {state: LOST}) { totalCount } fleetSummary {
    states { value count } capacity { resource allocatable available }
} }
"""


async def test_a_silent_node_is_told_read_and_given_no_work_until_it_is_heard_again(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    database, operator = server.services.database, server.operator
    node_id = await report(server.agent, "n1", GPUS)
    await listened(database, 3600)
    loop = liveness(database, Patience(), utc_now)
    async with (
        open_socket(address, operator.token) as socket,
        background(run(reachable(database))),
    ):
        await socket.subscribe(FOLLOW, after=(await operator.data("{ feedCursor }"))["feedCursor"], nodes=[node_id])
        await silence(database, 3600, node_id)
        # From here on its loop runs as it does in a server, with its pause of seconds.
        async with background(run(loop)):
            gone = (await socket.next())["nodeConditionChanged"]
            fleet = await operator.data(FLEET)
            refused = await operator.send(ALLOCATE, shard="s1")
            beat = {"nodeId": node_id, "hashes": [hash_of(section("gpus", GPUS["gpus"]))]}
            (slot,) = (await server.agent.data(RECORD, entries=[beat]))["recordInventoryHashes"]
            back = (await socket.next())["nodeConditionChanged"]
        exposed = {"nodeId": node_id, "conditions": [{"type": "ForeignGpuExposure"}, {"type": "MPSDown"}]}
        await server.agent.data(STATUS, entries=[exposed])
        said = [(await socket.next())["nodeConditionChanged"] for _ in range(2)]
        await server.agent.data(STATUS, entries=[{"nodeId": node_id, "conditions": []}])
        over = [(await socket.next())["nodeConditionChanged"] for _ in range(2)]
    assert _short(gone) == ("NodeUnreachable", "TRUE", "Lost", True)
    assert gone["node"] == {
        "connectivity": "LOST",
        "state": "LOST",
        "schedulable": False,
        "noScheduleReasons": ["NodeUnreachable"],
    }
    assert fleet["lost"]["totalCount"] == 1
    assert fleet["fleetSummary"] == {
        "states": [{"value": "lost", "count": 1}],
        "capacity": [{"resource": "gpu", "allocatable": 0, "available": 0}],
    }
    assert refused["errors"][0]["extensions"]["code"] == "CONFLICT"
    assert "NodeUnreachable" in refused["errors"][0]["message"]
    assert slot["error"] is None
    assert _short(back) == ("NodeUnreachable", "FALSE", None, True)
    assert (back["node"]["connectivity"], back["node"]["noScheduleReasons"]) == ("CONNECTED", [])
    assert [_short(each) for each in said] == [
        ("ForeignGpuExposure", "TRUE", None, True),
        ("MPSDown", "TRUE", None, False),
    ]
    assert said[1]["node"]["noScheduleReasons"] == ["ForeignGpuExposure"]
    assert [_short(each)[:2] for each in over] == [("ForeignGpuExposure", "FALSE"), ("MPSDown", "FALSE")]
    assert over[1]["node"]["noScheduleReasons"] == []


def _short(told: dict[str, Any]) -> tuple[str, str, str | None, bool]:
    return told["condition"], told["status"], told["reason"], told["noSchedule"]
