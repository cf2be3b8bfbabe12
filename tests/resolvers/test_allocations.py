"""Claiming atoms and a share of their host, and letting go of them, against the running server."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from db.database import Database
from tests.support.atoms import add_atoms, set_devices, set_node
from tests.support.server import Client, RunningServer, hello, report

ALLOCATE = """
mutation ($input: AllocateInput!) {
  allocate(input: $input) {
    created powerW node { id } devices { id }
    allocation {
      id nodeId shardId replicaId reservationId memoryGB cpuCores powerW degraded degradedReasons
      devices { id } during { from to }
    }
  }
}
"""
RELEASE = """
mutation ($shard: ID, $replica: ID) {
  release(shardId: $shard, replicaId: $replica) { id shardId devices { id } during { from to } }
}
"""
NODE = """
query ($id: ID!) { computeNode(id: $id) { allocations { id shardId devices { id } } } }
"""
DEVICE = """
query ($id: ID!) { device(id: $id) { bookings { id allocation { id shardId } during { from to } } } }
"""
HEALTH = """
query ($id: ID!) { computeNode(id: $id) { allocations { degradedReasons devices { id } } } }
"""
TABLES = ("allocations", "bookings", "devices", "nodes", "outbox", "events")


async def allocate(client: Client, shard: str, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - any input
    """Allocate, and return the result."""
    return dict((await client.data(ALLOCATE, input={"shardId": shard, **asked}))["allocate"])


async def refused(client: Client, shard: str, **asked: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return the code and the message with which a request is refused."""
    answer = await client.send(ALLOCATE, input={"shardId": shard, **asked})
    [error] = answer["errors"]
    return error["extensions"]["code"], error["message"]


async def release(client: Client, *, shard: str | None = None, replica: str | None = None) -> list[dict[str, Any]]:
    return list((await client.data(RELEASE, shard=shard, replica=replica))["release"])


def ids(result: dict[str, Any]) -> list[str]:
    return [device["id"] for device in result["devices"]]


async def contents(database: Database) -> dict[str, list[str]]:
    """Return every row of the tables that a claim could touch."""
    async with database.transaction() as tx:
        return {
            table: [row[0] for row in await tx.fetch(f"select t::text from {table} t order by 1")]  # noqa: S608 - ours
            for table in TABLES
        }


@pytest.fixture
async def node(server: RunningServer, database: Database) -> str:
    """A node with four free GPUs."""
    node_id = await hello(server.agent, "n1")
    await add_atoms(database, node_id, "GPU-a", "GPU-b", "GPU-c", "GPU-d")
    return node_id


async def test_atoms_are_claimed_by_id_and_shown_with_their_allocation(server: RunningServer, node: str) -> None:
    asked = {"deviceIds": ["GPU-c", "GPU-a"], "replicaId": "r", "reservationId": "v", "powerW": 1400.5, "memoryGB": 64}
    found = await allocate(server.operator, "s1", **asked)
    made = found["allocation"]
    assert found == {**found, "created": True, "powerW": 1400.5, "node": {"id": node}}
    assert ids(found) == ids(made) == ["GPU-a", "GPU-c"]
    assert made == {
        **made,
        "nodeId": node,
        "shardId": "s1",
        "replicaId": "r",
        "reservationId": "v",
        "memoryGB": 64,
        "cpuCores": None,
        "powerW": 1400.5,
        "degraded": False,
        "degradedReasons": [],
    }
    assert made["during"]["to"] is None
    shown = (await server.operator.data(NODE, id=node))["computeNode"]["allocations"]
    assert shown == [{"id": made["id"], "shardId": "s1", "devices": [{"id": "GPU-a"}, {"id": "GPU-c"}]}]
    [booking] = (await server.operator.data(DEVICE, id="GPU-a"))["device"]["bookings"]
    assert booking["allocation"] == {"id": made["id"], "shardId": "s1"}
    assert booking["during"] == made["during"]
    query = "query ($id: ID!) { node(id: $id) { __typename id } }"
    again = (await server.operator.data(query, id=made["id"]))["node"]
    assert again == {"__typename": "Allocation", "id": made["id"]}


async def test_of_fifty_clients_that_want_one_atom_one_gets_it(server: RunningServer, node: str) -> None:
    answers = await asyncio.gather(
        *(
            server.operator.send(ALLOCATE, input={"shardId": f"s{number}", "deviceIds": ["GPU-a"]})
            for number in range(50)
        )
    )
    won = [answer for answer in answers if "errors" not in answer]
    codes = [answer["errors"][0]["extensions"]["code"] for answer in answers if "errors" in answer]
    assert len(won) == 1
    assert codes == ["CONFLICT"] * 49
    [shown] = (await server.operator.data(NODE, id=node))["computeNode"]["allocations"]
    assert shown["id"] == won[0]["data"]["allocate"]["allocation"]["id"]


async def test_clients_that_want_any_atom_get_as_many_as_there_are(server: RunningServer, node: str) -> None:
    answers = await asyncio.gather(
        *(server.operator.send(ALLOCATE, input={"shardId": f"s{number}", "count": 1}) for number in range(12))
    )
    won = [answer["data"]["allocate"] for answer in answers if "errors" not in answer]
    assert sorted(device for each in won for device in ids(each)) == ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]
    assert {each["node"]["id"] for each in won} == {node}
    codes = {answer["errors"][0]["extensions"]["code"] for answer in answers if "errors" in answer}
    assert codes == {"CONFLICT"}


async def test_clients_that_want_the_same_node_spread_over_the_others(
    server: RunningServer, database: Database
) -> None:
    node_ids = [await hello(server.agent, f"n{number:02}") for number in range(12)]
    for number, node_id in enumerate(node_ids):
        await add_atoms(database, node_id, f"GPU-{number:02}")
    found = await asyncio.gather(*(allocate(server.operator, f"s{number}", count=1) for number in range(12)))
    assert sorted(each["node"]["id"] for each in found) == sorted(node_ids)


async def test_the_constraint_refuses_what_is_written_past_the_use_case(
    server: RunningServer, database: Database, node: str
) -> None:
    holder = (await allocate(server.operator, "s0", deviceIds=["GPU-d"]))["allocation"]["id"]
    async with database.transaction() as tx:
        await tx.execute(
            "insert into bookings (id, tenant_id, allocation_id, node_id, device_id, during)"
            " select 'x', tenant_id, id, node_id, 'GPU-a', during from allocations where id = $1",
            holder,
        )
        asking = asyncio.create_task(refused(server.operator, "s1", deviceIds=["GPU-a", "GPU-b"]))
        async with asyncio.timeout(10):
            while not await tx.value("select count(*) from pg_locks where not granted"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert await asking == ("CONFLICT", f"node {node}: one of GPU-a, GPU-b was taken a moment ago")
    assert (await server.operator.data(DEVICE, id="GPU-b"))["device"]["bookings"] == []


@pytest.mark.usefixtures("node")
async def test_a_claim_is_whole_or_nothing(server: RunningServer) -> None:
    await allocate(server.operator, "s1", deviceIds=["GPU-b"])
    code, message = await refused(server.operator, "s2", deviceIds=["GPU-a", "GPU-b"])
    assert code == "CONFLICT"
    assert "deviceIds.1: GPU-b is held by alloc_" in message
    assert (await refused(server.operator, "s2", count=4))[0] == "CONFLICT"
    assert ids(await allocate(server.operator, "s2", count=3)) == ["GPU-a", "GPU-c", "GPU-d"]


async def test_what_is_released_is_free_again_and_stays_as_history(
    server: RunningServer, database: Database, node: str
) -> None:
    first = await allocate(server.operator, "s1", deviceIds=["GPU-a", "GPU-b"])
    [ended] = await release(server.operator, shard="s1")
    assert ended["id"] == first["allocation"]["id"]
    assert ids(ended) == ["GPU-a", "GPU-b"]
    assert ended["during"]["to"] >= ended["during"]["from"] == first["allocation"]["during"]["from"]
    assert await release(server.operator, shard="s1") == []
    assert (await server.operator.data(NODE, id=node))["computeNode"]["allocations"] == []
    assert (await server.operator.data(DEVICE, id="GPU-a"))["device"]["bookings"] == []
    second = await allocate(server.operator, "s1", deviceIds=["GPU-a", "GPU-b"])
    assert second["created"]
    assert second["allocation"]["id"] != first["allocation"]["id"]
    assert len((await contents(database))["bookings"]) == 4


async def test_a_replica_is_released_whole(server: RunningServer, database: Database, node: str) -> None:
    other = await hello(server.agent, "n2")
    await add_atoms(database, other, "GPU-x")
    await allocate(server.operator, "s1", replicaId="r1", deviceIds=["GPU-a"])
    await allocate(server.operator, "s2", replicaId="r1", deviceIds=["GPU-x"])
    await allocate(server.operator, "s3", replicaId="r2", deviceIds=["GPU-b"])
    assert [each["shardId"] for each in await release(server.operator, replica="r1")] == ["s1", "s2"]
    shown = (await server.operator.data(NODE, id=node))["computeNode"]["allocations"]
    assert [each["shardId"] for each in shown] == ["s3"]


async def test_the_same_request_again_is_answered_with_the_same_allocation(server: RunningServer, node: str) -> None:
    asked = {"count": 2, "filter": {"selector": "!spot"}, "selector": {"gpuModel": "H100"}, "cpuCores": 8}
    first = await allocate(server.operator, "s1", **asked)
    again = await allocate(server.operator, "s1", **asked)
    assert again == {**first, "created": False}
    code, message = await refused(server.operator, "s1", **{**asked, "count": 3, "cpuCores": 9})
    assert code == "CONFLICT"
    assert "another count, cpuCores" in message
    by_id = {"deviceIds": ["GPU-c", "GPU-d"]}
    assert (await allocate(server.operator, "s2", **by_id))["node"] == {"id": node}
    assert not (await allocate(server.operator, "s2", deviceIds=["GPU-d", "GPU-c"]))["created"]


async def test_a_shard_that_asks_many_times_at_once_gets_one_allocation(server: RunningServer, node: str) -> None:
    found = await asyncio.gather(*(allocate(server.operator, "s1", count=1) for _ in range(8)))
    assert len({each["allocation"]["id"] for each in found}) == 1
    assert sum(each["created"] for each in found) == 1
    assert len((await server.operator.data(NODE, id=node))["computeNode"]["allocations"]) == 1


async def test_a_what_if_says_what_would_be_chosen_and_writes_nothing(
    server: RunningServer, database: Database, node: str
) -> None:
    await allocate(server.operator, "s0", deviceIds=["GPU-a"])
    before = await contents(database)
    found = await allocate(server.operator, "s1", count=2, whatIf=True)
    assert found == {**found, "created": False, "allocation": None, "node": {"id": node}}
    assert ids(found) == ["GPU-b", "GPU-c"]
    assert (await refused(server.operator, "s1", count=4, whatIf=True))[0] == "CONFLICT"
    assert (await refused(server.operator, "s1", deviceIds=["GPU-a"], whatIf=True))[0] == "CONFLICT"
    assert await contents(database) == before
    assert ids(await allocate(server.operator, "s1", count=2)) == ids(found)


async def test_host_memory_and_cores_are_claimed_once(server: RunningServer) -> None:
    documents = {"memory": {"totalBytes": 100 * 10**9 + 1}, "cpu": {"cores": 16}}
    node_id = await report(server.agent, "host", documents)
    await allocate(server.operator, "s1", nodeId=node_id, memoryGB=60, cpuCores=10)
    code, message = await refused(server.operator, "s2", nodeId=node_id, memoryGB=41)
    assert (code, message) == ("CONFLICT", "memoryGB: 41 asked for; of the node's 100, 60 are claimed")
    code, message = await refused(server.operator, "s2", nodeId=node_id, cpuCores=7)
    assert (code, message) == ("CONFLICT", "cpuCores: 7 asked for; of the node's 16, 10 are claimed")
    await allocate(server.operator, "s2", nodeId=node_id, memoryGB=40, cpuCores=6)
    await release(server.operator, shard="s1")
    await allocate(server.operator, "s3", nodeId=node_id, memoryGB=60, cpuCores=10)


async def test_what_a_node_did_not_report_constrains_nothing(server: RunningServer, node: str) -> None:
    found = await allocate(server.operator, "s1", nodeId=node, memoryGB=10**6, cpuCores=10**6)
    assert found["allocation"]["memoryGB"] == 10**6


def later(hours: int) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


async def test_times_that_do_not_overlap_share_an_atom(server: RunningServer, node: str) -> None:
    await allocate(server.operator, "s1", deviceIds=["GPU-a"], during={"from": later(2), "to": later(4)})
    await allocate(server.operator, "s2", deviceIds=["GPU-a"], during={"to": later(1)})
    await allocate(server.operator, "s3", deviceIds=["GPU-a"], during={"from": later(5)})
    for during in ({}, {"to": later(3)}, {"from": later(3), "to": later(5)}, {"from": later(6)}):
        code, message = await refused(server.operator, "s4", deviceIds=["GPU-a"], during=during)
        assert code == "CONFLICT"
        assert "GPU-a is held by" in message
    bookings = (await server.operator.data(DEVICE, id="GPU-a"))["device"]["bookings"]
    assert [each["allocation"]["shardId"] for each in bookings] == ["s2", "s1", "s3"]
    [ended] = await release(server.operator, shard="s1")
    assert ended["during"]["from"] == ended["during"]["to"]
    await allocate(server.operator, "s4", deviceIds=["GPU-a"], during={"from": later(2), "to": later(4)})
    assert (await server.operator.data(NODE, id=node))["computeNode"]["allocations"]


async def test_one_piece_of_hardware_is_held_once_under_all_its_names(
    server: RunningServer, database: Database, node: str
) -> None:
    await add_atoms(database, node, node, device_class="node", model=None)
    await add_atoms(database, node, "GPU-e", bookable=False)
    await add_atoms(database, node, "GPU-e/s0", "GPU-e/s1", device_class="gpu.slot", parent="GPU-e")
    await allocate(server.operator, "s1", deviceIds=["GPU-e/s0"])
    code, message = await refused(server.operator, "whole", deviceIds=[node])
    assert code == "CONFLICT"
    assert "through GPU-e/s0" in message
    await release(server.operator, shard="s1")
    await allocate(server.operator, "whole", deviceIds=[node])
    for device_id in ("GPU-a", "GPU-e/s1"):
        assert (await refused(server.operator, "s2", deviceIds=[device_id]))[0] == "CONFLICT"
    assert (await refused(server.operator, "s2", count=1))[0] == "CONFLICT"
    both = {"deviceIds": ["GPU-a", node]}
    assert (await refused(server.operator, "s2", **both))[0] == "INVALID_INPUT"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"healthy": False}, "unhealthy"),
        ({"healthy": False, "missing": True}, "missing"),
        ({"partition_pending": True}, "partitionPending"),
        ({"bookable": False}, "not bookable"),
    ],
)
async def test_an_atom_that_cannot_be_given_is_not(
    server: RunningServer, database: Database, node: str, values: dict[str, bool], reason: str
) -> None:
    await set_devices(database, "GPU-a", **values)
    code, message = await refused(server.operator, "s1", deviceIds=["GPU-a"])
    assert (code, message) == ("CONFLICT", f"deviceIds.0: GPU-a is {reason}")
    code, message = await refused(server.operator, "s1", nodeId=node, count=4)
    assert code == "CONFLICT"
    assert "of 4 gpu devices" in message
    assert ids(await allocate(server.operator, "s1", count=3)) == ["GPU-b", "GPU-c", "GPU-d"]


async def test_the_parts_of_an_unhealthy_gpu_are_not_given(
    server: RunningServer, database: Database, node: str
) -> None:
    await add_atoms(database, node, "GPU-e", bookable=False)
    await add_atoms(database, node, "GPU-e/gi1/ci0", device_class="gpu.mig", parent="GPU-e")
    await set_devices(database, "GPU-e", healthy=False)
    code, message = await refused(server.operator, "s1", deviceIds=["GPU-e/gi1/ci0"])
    assert (code, message) == ("CONFLICT", "deviceIds.0: GPU-e/gi1/ci0 is unhealthy")
    assert (await refused(server.operator, "s1", count=1, selector={"class": "GPU_MIG"}))[0] == "CONFLICT"


@pytest.mark.usefixtures("node")
async def test_an_allocation_whose_atom_turns_unhealthy_is_degraded_and_keeps_it(
    server: RunningServer, database: Database
) -> None:
    made = await allocate(server.operator, "s1", deviceIds=["GPU-a", "GPU-b"])
    await set_devices(database, "GPU-b", healthy=False)
    query = "query ($id: ID!) { node(id: $id) { ... on Allocation { degraded degradedReasons devices { id } } } }"
    found = (await server.operator.data(query, id=made["allocation"]["id"]))["node"]
    assert found["degraded"]
    assert found["degradedReasons"] == ["AtomUnhealthy: GPU-b"]
    assert ids(found) == ["GPU-a", "GPU-b"]
    await set_devices(database, "GPU-b", healthy=True)
    found = (await server.operator.data(query, id=made["allocation"]["id"]))["node"]
    assert (found["degraded"], found["degradedReasons"]) == (False, [])


@pytest.mark.parametrize(
    "values",
    [
        {"cordoned": True},
        {"maintenance": True},
        {"draining": True},
        {"provision_state": "retired"},
        {"trust": "tenant-controlled"},
        {"no_schedule_reasons": ["Xid79"]},
    ],
)
async def test_a_node_that_takes_no_new_work_gets_none(
    server: RunningServer, database: Database, node: str, values: dict[str, Any]
) -> None:
    held = await allocate(server.operator, "s0", deviceIds=["GPU-d"])
    await set_node(database, node, **values)
    for asked in ({"deviceIds": ["GPU-a"]}, {"nodeId": node, "count": 1}, {"count": 1}):
        code, message = await refused(server.operator, "s1", **asked)
        assert code == "CONFLICT"
        assert "takes" in message
    assert (await allocate(server.operator, "s0", deviceIds=["GPU-d"]))["allocation"] == held["allocation"]


async def test_the_node_is_chosen_that_has_just_enough(server: RunningServer, database: Database, node: str) -> None:
    small = await hello(server.agent, "n2")
    await add_atoms(database, small, "GPU-x", "GPU-y", model="L4")
    assert (await allocate(server.operator, "s1", count=2))["node"] == {"id": small}
    assert (await allocate(server.operator, "s2", count=2))["node"] == {"id": node}
    code, message = await refused(server.operator, "s3", count=1, selector={"gpuModel": "L4"})
    assert code == "CONFLICT"
    assert "no node that fits" in message
    assert (await refused(server.operator, "s3", count=1, filter={"id": [small]}))[0] == "CONFLICT"
    assert (await refused(server.operator, "s3", count=1, selector={"vramGiBMin": 81}))[0] == "CONFLICT"
    await release(server.operator, shard="s1")
    found = await allocate(server.operator, "s3", count=1, filter={"text": "N2"}, selector={"vramGiBMin": 80})
    assert found["node"] == {"id": small}


async def test_of_nodes_with_enough_atoms_the_one_is_chosen_that_has_the_memory_too(server: RunningServer) -> None:
    small = await report(server.agent, "small", {"memory": {"totalBytes": 10 * 10**9}})
    large = await report(server.agent, "large", {"memory": {"totalBytes": 90 * 10**9}})
    assert (await allocate(server.operator, "s1", memoryGB=50))["node"] == {"id": large}
    code, message = await refused(server.operator, "s2", memoryGB=50)
    assert code == "CONFLICT"
    assert "none of the 2 nodes" in message
    assert (await allocate(server.operator, "s2", memoryGB=9, filter={"id": [small]}))["node"] == {"id": small}


async def test_atoms_near_each_other_are_chosen(server: RunningServer, database: Database) -> None:
    node_id = await hello(server.agent, "n1")
    await add_atoms(database, node_id, "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", numa=[0, 1, 0, 1, 0])
    assert ids(await allocate(server.operator, "s1", count=2)) == ["GPU-2", "GPU-4"]
    assert ids(await allocate(server.operator, "s2", count=2)) == ["GPU-1", "GPU-3"]


@pytest.mark.parametrize(
    ("asked", "code", "place"),
    [
        ({}, "INVALID_INPUT", "input"),
        ({"count": -1}, "INVALID_INPUT", "count"),
        ({"count": 5000}, "INVALID_INPUT", "count"),
        ({"count": 1, "deviceIds": ["GPU-a"]}, "INVALID_INPUT", "count"),
        ({"deviceIds": ["GPU-a", "GPU-a"]}, "INVALID_INPUT", "deviceIds"),
        ({"deviceIds": ["GPU-a"], "filter": {}}, "INVALID_INPUT", "filter"),
        ({"deviceIds": ["GPU-?"]}, "NOT_FOUND", "deviceIds.0"),
        ({"deviceIds": ["\0"]}, "INVALID_INPUT", "deviceIds"),
        ({"nodeId": "node_x", "count": 1}, "NOT_FOUND", "nodeId"),
        ({"nodeId": "\0", "count": 1}, "INVALID_INPUT", "nodeId"),
        ({"memoryGB": 0, "count": 1}, "INVALID_INPUT", "memoryGB"),
        ({"powerW": -1, "count": 1}, "INVALID_INPUT", "powerW"),
        ({"count": 1, "selector": {"class": "DISK"}}, "INVALID_INPUT", "selector.class"),
        ({"count": 1, "selector": {"gpuModel": ""}}, "INVALID_INPUT", "selector.gpuModel"),
        ({"count": 1, "replicaId": " "}, "INVALID_INPUT", "replicaId"),
        ({"count": 1, "during": {"to": "2020-01-01T00:00:00Z"}}, "INVALID_INPUT", "during.to"),
        ({"count": 1, "during": {"from": "9999-12-31T23:59:59Z"}}, "INVALID_INPUT", "during.from"),
        ({"count": 1, "filter": {"id": []}}, "INVALID_INPUT", "filter.id"),
    ],
)
@pytest.mark.usefixtures("node")
async def test_a_wrong_request_is_refused_with_its_place(
    server: RunningServer, asked: dict[str, Any], code: str, place: str
) -> None:
    found, message = await refused(server.operator, "s1", **asked)
    assert (found, message.partition(":")[0]) == (code, place)


async def test_what_is_no_atom_is_named_in_the_refusal(server: RunningServer, database: Database, node: str) -> None:
    await add_atoms(database, node, "wwn-1", device_class="disk", bookable=False)
    code, message = await refused(server.operator, "s1", deviceIds=["wwn-1"])
    assert (code, message) == ("INVALID_INPUT", "deviceIds.0: 'wwn-1' is a disk, which is not allocated")
    other = await hello(server.agent, "n2")
    await add_atoms(database, other, "GPU-x")
    assert (await refused(server.operator, "s1", deviceIds=["GPU-a", "GPU-x"]))[0] == "INVALID_INPUT"
    assert (await refused(server.operator, "s1", deviceIds=["GPU-a"], nodeId=other))[0] == "INVALID_INPUT"


async def test_release_takes_exactly_one_name(server: RunningServer) -> None:
    for given in ({}, {"shard": "s", "replica": "r"}, {"shard": " "}):
        answer = await server.operator.send(RELEASE, **given)
        assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"


async def test_what_is_another_tenants_cannot_be_claimed_or_released(server: RunningServer, node: str) -> None:
    made = await allocate(server.operator, "s1", replicaId="r1", deviceIds=["GPU-a"])
    assert (await refused(server.stranger, "s1", deviceIds=["GPU-b"]))[0] == "NOT_FOUND"
    assert (await refused(server.stranger, "s1", nodeId=node, count=1))[0] == "NOT_FOUND"
    assert (await refused(server.stranger, "s1", count=1))[0] == "CONFLICT"
    assert await release(server.stranger, shard="s1") == []
    assert await release(server.stranger, replica="r1") == []
    answer = await server.stranger.send("query ($id: ID!) { node(id: $id) { id } }", id=made["allocation"]["id"])
    assert answer["errors"][0]["extensions"]["code"] == "NOT_FOUND"


async def test_an_agent_may_not(server: RunningServer, node: str) -> None:
    assert (await refused(server.agent, "s1", nodeId=node, count=1))[0] == "FORBIDDEN"
    answer = await server.agent.send(RELEASE, shard="s1")
    assert answer["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_a_reported_gpu_that_vanishes_while_it_is_held_stays_until_it_is_released(server: RunningServer) -> None:
    def gpus(*uuids: str) -> dict[str, Any]:
        listed = [{"uuid": uuid, "name": "NVIDIA H100 80GB HBM3", "vramMiB": 81559} for uuid in uuids]
        return {"gpus": {"enumeration": "complete", "gpus": listed}}

    both = [f"GPU-{digit * 8}-0000-4000-8000-000000000000" for digit in "12"]
    node_id = await report(server.agent, "n1", gpus(*both))
    made = await allocate(server.operator, "s1", count=2, selector={"gpuModel": "H100"})
    assert ids(made) == both
    await report(server.agent, "n1", gpus(both[0]))
    [held] = (await server.operator.data(HEALTH, id=node_id))["computeNode"]["allocations"]
    assert held == {"degradedReasons": [f"AtomUnhealthy: {both[1]}"], "devices": [{"id": each} for each in both]}
    assert (await refused(server.operator, "s2", deviceIds=[both[1]]))[0] == "CONFLICT"
    await release(server.operator, shard="s1")
    assert (await refused(server.operator, "s2", deviceIds=[both[1]]))[1].endswith("is missing")
    assert ids(await allocate(server.operator, "s2", count=1)) == [both[0]]
