"""Commands of nodes, through the API."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconcilers.commands import commands as expiry
from tests.support.server import Client, RunningServer, hello, report
from tests.support.socket import open_socket
from tests.support.waiting import until, until_seen

FIELDS = "id nodeId sequence kind payload state reason message result issuedBy startedAt finishedAt"
ISSUE = f"mutation ($input: CommandInput!) {{ issueCommand(input: $input) {{ {FIELDS} }} }}"
REFRESH = f"mutation ($id: ID!) {{ refreshInventory(id: $id) {{ {FIELDS} }} }}"
CANCEL = f'mutation ($id: ID!) {{ cancelCommand(id: $id, reason: "not now") {{ {FIELDS} }} }}'
TAKE = f"mutation ($id: ID!) {{ takeCommands(nodeId: $id) {{ {FIELDS} }} }}"
START = f"mutation ($input: StartCommandInput!) {{ startCommand(input: $input) {{ {FIELDS} }} }}"
COMPLETE = f"mutation ($input: CommandResultInput!) {{ completeCommand(input: $input) {{ {FIELDS} }} }}"
COMMAND = f"query ($id: ID!) {{ command(id: $id) {{ {FIELDS} }} node(id: $id) {{ id }} }}"
HISTORY = """
query ($id: ID!, $state: [CommandState!]) {
  computeNode(id: $id) { commands(state: $state) { totalCount nodes { sequence kind } } }
}
"""
FOLLOW = "subscription ($node: ID!) { nodeCommands(nodeId: $node) { id sequence kind state } }"
EVENTS = """
query ($id: ID!) {
  events(filter: {type: ["node.command.changed"], nodeId: [$id]}) {
    nodes { ... on NodeCommandChanged { sequence kind state reason by command { id } } }
  }
}
"""


def at(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def issue(client: Client, node_id: str, kind: str = "inventory.refresh", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    given = {"nodeId": node_id, "kind": kind, "key": f"{node_id}/{kind}", **more}
    return dict((await client.data(ISSUE, input=given))["issueCommand"])


async def step(client: Client, mutation: str, command: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    given = {"nodeId": command["nodeId"], "commandId": command["id"], **_run(mutation), **more}
    (answer,) = (await client.data(mutation, input=given)).values()
    return dict(answer)


def _run(mutation: str) -> dict[str, str]:
    return {"runId": "run-1"} if mutation == START else {}


async def take(client: Client, node_id: str) -> list[dict[str, Any]]:
    return list((await client.data(TAKE, id=node_id))["takeCommands"])


async def refusal(client: Client, query: str, **variables: Any) -> tuple[str, str]:  # noqa: ANN401 - any variable
    (error,) = (await client.send(query, **variables))["errors"]
    return error["extensions"]["code"], error["message"]


async def of_step(client: Client, mutation: str, command: dict[str, Any], **more: Any) -> str:  # noqa: ANN401
    given = {"nodeId": command["nodeId"], "commandId": command["id"], **_run(mutation), **more}
    return (await refusal(client, mutation, input=given))[0]


async def test_a_command_goes_from_issue_to_result_and_tells_each_step(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    issued = await issue(server.operator, node_id, "diag.nvml", payload={"gpuCount": 8})
    assert (issued["sequence"], issued["state"], issued["payload"]) == (1, "PENDING", {"gpuCount": 8})
    (taken,) = await take(server.agent, node_id)
    assert (taken["id"], taken["state"]) == (issued["id"], "ACKNOWLEDGED")
    started = await step(server.agent, START, issued)
    assert started["state"] == "RUNNING"
    assert started["startedAt"] is not None
    assert await step(server.agent, START, issued) == started
    # Two agents may speak for one node: what one of them runs the other does not.
    assert await of_step(server.agent, START, issued, runId="run-2") == "CONFLICT"
    said = {"outcome": "SUCCEEDED", "result": {"passed": False, "big": "9223372036854775808"}}
    done = await step(server.agent, COMPLETE, issued, **said)
    assert (done["state"], done["result"]) == ("SUCCEEDED", said["result"])
    assert await step(server.agent, COMPLETE, issued, **said) == done
    assert await of_step(server.agent, COMPLETE, issued, outcome="FAILED") == "CONFLICT"
    found = await server.operator.data(COMMAND, id=issued["id"])
    assert found == {"command": done, "node": {"id": issued["id"]}}
    assert await take(server.agent, node_id) == []

    async def told_of() -> list[dict[str, Any]]:
        return list((await server.operator.data(EVENTS, id=node_id))["events"]["nodes"])

    async def all_told() -> bool:
        return len(await told_of()) == 4

    await until_seen(all_told)
    told = await told_of()
    assert [(each["state"], each["by"]) for each in told] == [
        ("PENDING", "ours operator"),
        ("ACKNOWLEDGED", "ours agent"),
        ("RUNNING", "ours agent"),
        ("SUCCEEDED", "ours agent"),
    ]
    assert {each["command"]["id"] for each in told} == {issued["id"]}


async def test_a_repeated_key_is_the_same_command_and_with_other_contents_a_conflict(server: RunningServer) -> None:
    one, two = await hello(server.agent, "n1"), await hello(server.agent, "n2")
    first = await issue(server.operator, one, key="k", notAfter=at(600))
    again = await server.operator.send(
        ISSUE, input={"nodeId": one, "kind": "inventory.refresh", "key": "k", "notAfter": at(700)}
    )
    assert again["errors"][0]["extensions"]["code"] == "CONFLICT"
    assert "notAfter" in again["errors"][0]["message"]
    for other in ({"nodeId": two}, {"kind": "node.reboot"}):
        given = {"nodeId": one, "kind": "inventory.refresh", "key": "k", **other}
        assert (await refusal(server.operator, ISSUE, input=given))[0] == "CONFLICT"
    plain = await issue(server.operator, one, key="plain")
    assert await issue(server.operator, one, key="plain") == plain
    await server.operator.data(CANCEL, id=plain["id"])
    assert (await issue(server.operator, one, key="plain"))["state"] == "CANCELLED"
    assert (first["sequence"], plain["sequence"]) == (1, 2)


async def test_commands_issued_at_once_are_numbered_without_a_gap_and_a_key_wins_once(server: RunningServer) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(2)]
    issued = await asyncio.gather(
        *(issue(server.operator, node_id, key=f"{node_id}/{number}") for node_id in nodes for number in range(8))
    )
    for node_id in nodes:
        assert sorted(each["sequence"] for each in issued if each["nodeId"] == node_id) == list(range(1, 9))
    same = await asyncio.gather(*(issue(server.operator, nodes[0], "diag.nvml", key="same") for _ in range(8)))
    assert len({each["id"] for each in same}) == 1
    answers = await asyncio.gather(
        *(
            server.operator.send(ISSUE, input={"nodeId": node_id, "kind": "node.reboot", "key": "one of two"})
            for node_id in nodes
        )
    )
    codes = [each["errors"][0]["extensions"]["code"] for each in answers if "errors" in each]
    assert codes == ["CONFLICT"]


async def test_what_is_not_due_or_over_or_cancelled_is_never_delivered(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    later = await issue(server.operator, node_id, key="later", notBefore=at(60))
    short = await issue(server.operator, node_id, key="short", notAfter=at(0.2))
    called_off = await issue(server.operator, node_id, key="off")
    assert (await server.operator.data(CANCEL, id=called_off["id"]))["cancelCommand"]["message"] == "not now"
    now = await issue(server.operator, node_id, key="now")
    await asyncio.sleep(0.25)
    assert [each["id"] for each in await take(server.agent, node_id)] == [now["id"]]
    for each in (later, short, called_off):
        assert await of_step(server.agent, START, each) == "CONFLICT"
    # What runs comes again: its agent may have lost that it does.
    await step(server.agent, START, now)
    assert [each["state"] for each in await take(server.agent, node_id)] == ["RUNNING"]
    assert (await refusal(server.operator, CANCEL, id=now["id"]))[0] == "CONFLICT"


async def test_time_ends_what_was_not_started_and_what_gave_no_result(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    await issue(server.operator, node_id, key="waits", notAfter=at(3600 * 3))
    overdue = await issue(server.operator, node_id, key="overdue", notAfter=at(60))
    running = await issue(server.operator, node_id, "node.reboot", key="running")
    await step(server.agent, START, running)
    database = server.services.database
    reconcile = expiry(database, lambda: datetime.now(UTC) + timedelta(hours=2)).activate
    assert (await reconcile()).done == 2
    assert (await reconcile()).done == 0
    found = [(await server.operator.data(COMMAND, id=each["id"]))["command"] for each in (overdue, running)]
    assert [(each["state"], each["reason"]) for each in found] == [("EXPIRED", "not-started"), ("EXPIRED", "no-result")]
    assert await of_step(server.agent, COMPLETE, running, outcome="SUCCEEDED") == "CONFLICT"
    history = await server.operator.data(HISTORY, id=node_id, state=["PENDING"])
    assert history["computeNode"]["commands"] == {
        "totalCount": 1,
        "nodes": [{"sequence": 1, "kind": "inventory.refresh"}],
    }
    whole = (await server.operator.data(HISTORY, id=node_id))["computeNode"]["commands"]["nodes"]
    assert [each["sequence"] for each in whole] == [3, 2, 1]


async def test_a_node_that_waits_to_refresh_is_not_told_twice(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    first = (await server.operator.data(REFRESH, id=node_id))["refreshInventory"]
    assert (await server.operator.data(REFRESH, id=node_id))["refreshInventory"]["id"] == first["id"]
    await step(server.agent, START, first)
    # What was plugged in since it began may have been missed.
    second = (await server.operator.data(REFRESH, id=node_id))["refreshInventory"]
    assert second["sequence"] == 2


async def test_only_a_gpu_of_the_node_is_reset(server: RunningServer) -> None:
    gpus = {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-a1b2"}]}}
    node_id, other = await report(server.agent, "n1", gpus), await hello(server.agent, "n2")
    issued = await issue(server.operator, node_id, "gpu.reset", payload={"deviceId": "GPU-a1b2"})
    assert issued["payload"] == {"deviceId": "GPU-a1b2"}
    given = {"nodeId": other, "kind": "gpu.reset", "key": "k", "payload": {"deviceId": "GPU-a1b2"}}
    code, message = await refusal(server.operator, ISSUE, input=given)
    assert code == "INVALID_INPUT"
    assert "payload.deviceId" in message


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kind": "node.explode"}, "kind"),
        ({"payload": {"force": True}}, "payload"),
        ({"payload": [1]}, "payload"),
        ({"key": ""}, "key"),
        ({"notAfter": "2020-01-01T00:00:00Z"}, "notAfter"),
        ({"notBefore": "0001-01-01T00:00:00Z"}, "notBefore"),
    ],
)
async def test_a_bad_command_is_refused_naming_the_place(
    server: RunningServer, more: dict[str, Any], said: str
) -> None:
    node_id = await hello(server.agent, "n1")
    given = {"nodeId": node_id, "kind": "inventory.refresh", "key": "k", **more}
    code, message = await refusal(server.operator, ISSUE, input=given)
    assert code == "INVALID_INPUT"
    assert message.startswith(said)


async def test_a_result_that_cannot_be_kept_is_refused(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    issued = await issue(server.operator, node_id)
    await step(server.agent, START, issued)
    for more in ({"result": {"a": "\0"}}, {"result": "x" * 300_000}, {"message": "x" * 5000}, {"reason": " "}):
        assert await of_step(server.agent, COMPLETE, issued, outcome="FAILED", **more) == "INVALID_INPUT"
    assert (await step(server.agent, COMPLETE, issued, outcome="FAILED", reason="x"))["reason"] == "x"


async def test_agents_issue_nothing_and_another_tenants_or_nodes_commands_are_not_found(server: RunningServer) -> None:
    node_id, other = await hello(server.agent, "n1"), await hello(server.agent, "n2")
    issued = await issue(server.operator, node_id)
    given = {"nodeId": node_id, "kind": "node.reboot", "key": "mine"}
    assert (await refusal(server.agent, ISSUE, input=given))[0] == "FORBIDDEN"
    assert (await refusal(server.agent, REFRESH, id=node_id))[0] == "FORBIDDEN"
    assert (await refusal(server.agent, CANCEL, id=issued["id"]))[0] == "FORBIDDEN"
    assert (await refusal(server.stranger, ISSUE, input=given))[0] == "NOT_FOUND"
    for query in (TAKE, REFRESH):
        assert (await refusal(server.stranger, query, id=node_id))[0] == "NOT_FOUND"
    for query in (CANCEL, COMMAND):
        codes = {each["extensions"]["code"] for each in (await server.stranger.send(query, id=issued["id"]))["errors"]}
        assert codes == {"NOT_FOUND"}
    for client, of_node in ((server.stranger, node_id), (server.agent, other), (server.agent, "x\0")):
        for query, more in ((START, {}), (COMPLETE, {"outcome": "FAILED"})):
            assert await of_step(client, query, {**issued, "nodeId": of_node}, **more) == "NOT_FOUND"


async def test_an_agent_follows_its_commands_and_a_new_subscription_begins_with_what_is_open(
    served: tuple[RunningServer, str],
) -> None:
    server, address = served
    node_id, other = await hello(server.agent, "n1"), await hello(server.agent, "n2")
    first = await issue(server.operator, node_id, key="1")
    later = await issue(server.operator, node_id, key="2", notBefore=at(1.2))
    async with open_socket(address, server.agent.token) as socket:
        await socket.subscribe(FOLLOW, node=node_id)
        assert (await socket.next())["nodeCommands"]["id"] == first["id"]
        await issue(server.operator, other, key="3")
        called_off = await issue(server.operator, node_id, key="4", notBefore=at(0.8))
        await server.operator.data(CANCEL, id=called_off["id"])
        now = await issue(server.operator, node_id, key="5")
        assert (await socket.next())["nodeCommands"]["id"] == now["id"]
        await take(server.agent, node_id)
        assert (await socket.next())["nodeCommands"]["id"] == later["id"]
    # Who has left costs nothing more.
    await until(lambda: not server.services.feed._watchers)
    await step(server.agent, START, first)
    await step(server.agent, COMPLETE, first, outcome="SUCCEEDED")
    await step(server.agent, START, now)
    async with open_socket(address, server.agent.token) as socket:
        await socket.subscribe(FOLLOW, node=node_id)
        again = [(await socket.next())["nodeCommands"] for _ in range(2)]
        assert [(each["id"], each["state"]) for each in again] == [
            (later["id"], "PENDING"),
            (now["id"], "RUNNING"),
        ]  # by number, whatever fell due first
    async with open_socket(address, server.stranger.token) as socket:
        await socket.subscribe(FOLLOW, node=node_id)
        assert (await socket.error())["extensions"]["code"] == "NOT_FOUND"
