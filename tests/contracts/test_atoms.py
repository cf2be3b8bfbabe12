"""Atoms from the report to the API, for pools of each sharing, through pool changes and bookings."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.booking import book, end_bookings
from tests.support.server import RunningServer, hello, ingest, running_server
from web.app import utc_now

WHOLE = {"uuid": "GPU-whole", "pciBusId": "00000000:18:00.0", "vramMiB": 81920}
PARTED = {
    "uuid": "GPU-parted",
    "pciBusId": "00000000:2A:00.0",
    "migMode": {"current": True, "pending": True},
    "migInstances": [
        {"gi": 1, "ci": 0, "profile": "1c.3g.40gb", "memoryMiB": 40960},
        {"gi": 1, "ci": 1, "profile": "2c.3g.40gb", "memoryMiB": 40960},
    ],
}
CHANGING = {"uuid": "GPU-changing", "pciBusId": "00000000:3A:00.0", "migMode": {"current": False, "pending": True}}
NICS = {"nics": [{"name": "eth0", "permanentMac": "0c:42:a1:00:00:01", "vfs": [{"index": 0}, {"index": 1}]}]}
MACHINE = {"gpus": {"enumeration": "complete", "gpus": [WHOLE, PARTED, CHANGING]}, "nics": NICS}

ALLOCATE = "mutation ($input: AllocateInput!) { allocate(input: $input) { allocation { id } } }"
RELEASE = "mutation ($shard: ID!) { release(shardId: $shard) { id } }"
CAPACITY = "{ fleetSummary { capacity { resource allocatable allocated reserved available } } }"
CREATE_SITE = 'mutation { createSite(input: {name: "here", iamRegion: "eu-1"}) { id } }'
CREATE_POOL = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
UPDATE_POOL = "mutation ($id: ID!, $input: PoolPatch!) { updatePool(id: $id, input: $input) { id } }"
ASSIGN = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
DEVICES = """
query ($id: ID!) { computeNode(id: $id) { devices(first: 200) { nodes {
    id class bookable healthy missing partitionPending vramGiB parent { id } children { id }
} } } }
"""


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _pool(server: RunningServer, name: str, **given: Any) -> str:  # noqa: ANN401 - fields of PoolInput
    sites = (await server.operator.data("{ sites { nodes { id } } }"))["sites"]["nodes"]
    site = sites[0] if sites else (await server.operator.data(CREATE_SITE))["createSite"]
    made = await server.operator.data(
        CREATE_POOL, input={"name": name, "siteId": site["id"], "class": "VPS_HOST", **given}
    )
    return str(made["createPool"]["id"])


async def _assign(server: RunningServer, node_id: str, pool_id: str | None) -> None:
    await server.operator.data(ASSIGN, id=node_id, pool=pool_id)


async def _node(database: Database, server: RunningServer, machine: Mapping[str, Any] = MACHINE) -> str:
    node_id = await hello(server.agent, "n1")
    await ingest(server.agent, node_id, machine)
    await apply_pending(database, utc_now)
    return node_id


async def _devices(server: RunningServer, node_id: str) -> dict[str, dict[str, Any]]:
    found = await server.operator.data(DEVICES, id=node_id)
    return {device["id"]: device for device in found["computeNode"]["devices"]["nodes"]}


async def _atoms(server: RunningServer, node_id: str) -> list[str]:
    return [device["id"] for device in (await _devices(server, node_id)).values() if device["bookable"]]


async def _counts(database: Database) -> tuple[int, int]:
    async with database.transaction() as tx:
        snapshots = await tx.value("select count(*) from inventory_snapshots")
        told = await tx.value("select count(*) from outbox where type = 'node.inventory.changed'")
    return snapshots, told


FUNCTIONS = ["0c:42:a1:00:00:01/vf0", "0c:42:a1:00:00:01/vf1"]
INSTANCES = ["GPU-parted/gi1/ci0", "GPU-parted/gi1/ci1"]


@pytest.mark.parametrize(
    ("given", "atoms"),
    [
        ({}, ["GPU-whole"]),
        ({"sharing": "MIG"}, []),
        ({"sharing": "TIMESLICE"}, [f"GPU-whole/s{number}" for number in range(4)]),
        ({"sharing": "MPS"}, [f"GPU-whole/s{number}" for number in range(10)]),
        ({"sharing": "MPS", "policy": {"sharing": {"replicas": 2}}}, ["GPU-whole/s0", "GPU-whole/s1"]),
        ({"class": "METAL_DEDICATED"}, ["GPU-whole", "node"]),
    ],
)
async def test_a_pool_divides_its_nodes_and_moving_out_undoes_it(
    database: Database, server: RunningServer, given: dict[str, Any], atoms: list[str]
) -> None:
    node_id = await _node(database, server)
    before = await _devices(server, node_id)
    counted = await _counts(database)
    await _assign(server, node_id, await _pool(server, "one", **given))
    assert (await apply_pending(database, utc_now)).done == 1
    expected = [*FUNCTIONS, *INSTANCES, *(node_id if atom == "node" else atom for atom in atoms)]
    assert sorted(await _atoms(server, node_id)) == sorted(expected)
    devices = await _devices(server, node_id)
    changing = [device for each, device in devices.items() if each.startswith("GPU-changing")]
    assert changing
    assert all(device["partitionPending"] and not device["bookable"] for device in changing)
    await _assign(server, node_id, None)
    await apply_pending(database, utc_now)
    assert await _devices(server, node_id) == before
    assert await _counts(database) == counted
    assert (await apply_pending(database, utc_now)).done == 0


async def test_parts_and_their_parents_name_each_other(database: Database, server: RunningServer) -> None:
    devices = await _devices(server, await _node(database, server))
    assert devices["GPU-parted"]["children"] == [{"id": each} for each in INSTANCES]
    assert devices["0c:42:a1:00:00:01"]["children"] == [{"id": each} for each in FUNCTIONS]
    assert devices["GPU-whole"]["children"] == []
    assert [devices[each]["parent"] for each in INSTANCES] == [{"id": "GPU-parted"}] * 2
    assert [devices[each]["vramGiB"] for each in INSTANCES] == [40.0, 40.0]


async def test_a_pool_that_changes_pulls_nothing_from_under_a_booking(
    database: Database, server: RunningServer
) -> None:
    node_id = await _node(database, server, {"gpus": {"enumeration": "complete", "gpus": [WHOLE]}})
    pool_id = await _pool(server, "one", sharing="TIMESLICE")
    await _assign(server, node_id, pool_id)
    await apply_pending(database, utc_now)
    await book(database, node_id, "GPU-whole/s3")
    counted = await _counts(database)
    await server.operator.data(UPDATE_POOL, id=pool_id, input={"sharing": "EXCLUSIVE"})
    await apply_pending(database, utc_now)
    devices = await _devices(server, node_id)
    assert list(devices) == ["GPU-whole", "GPU-whole/s3"]
    held = devices["GPU-whole/s3"]
    assert (held["bookable"], held["healthy"], held["missing"]) == (True, True, True)
    assert not devices["GPU-whole"]["bookable"]

    # While the booking lasts there is nothing to plan; once it has ended, the node is as its pool says.
    assert (await conflicts(database).activate()).done == 0
    await end_bookings(database, "GPU-whole/s3")
    assert (await conflicts(database).activate()).done == 1
    await apply_pending(database, utc_now)
    assert await _atoms(server, node_id) == list(await _devices(server, node_id)) == ["GPU-whole"]
    assert (await conflicts(database).activate()).done == 0
    assert await _counts(database) == counted


async def test_a_gpu_booked_whole_is_divided_when_its_booking_ends(database: Database, server: RunningServer) -> None:
    node_id = await _node(database, server, {"gpus": {"enumeration": "complete", "gpus": [WHOLE]}})
    await book(database, node_id, "GPU-whole")
    await _assign(server, node_id, await _pool(server, "one", sharing="MPS", policy={"sharing": {"replicas": 1}}))
    await apply_pending(database, utc_now)
    assert await _atoms(server, node_id) == ["GPU-whole"]
    await end_bookings(database, "GPU-whole")
    assert (await conflicts(database).activate()).done == 1
    await apply_pending(database, utc_now)
    assert await _atoms(server, node_id) == ["GPU-whole/s0"]


async def _claim(server: RunningServer, shard: str, device: str, start: int, end: int | None = None) -> str:
    """Ask for a device from one hour on, up to another or for good; return the code of the answer."""
    now = datetime.now(UTC)
    times = {"from": start, "to": end}
    during = {name: (now + timedelta(hours=hour)).isoformat() for name, hour in times.items() if hour}
    answer = await server.operator.send(
        ALLOCATE, input={"shardId": shard, "deviceIds": [device], "powerW": 1.0, "during": during}
    )
    return str(answer["errors"][0]["extensions"]["code"]) if "errors" in answer else "OK"


async def _capacity(server: RunningServer, resource: str) -> tuple[int, ...]:
    """Return how many are allocated, reserved and available."""
    counts = (await server.operator.data(CAPACITY))["fleetSummary"]["capacity"]
    [found] = [each for each in counts if each["resource"] == resource]
    return found["allocated"], found["reserved"], found["available"]


ONE_GPU = {"gpus": {"enumeration": "complete", "gpus": [WHOLE]}}
SPLIT = {"migMode": {"current": True, "pending": True}, "migInstances": [{"gi": 1, "ci": 0}]}


@pytest.mark.parametrize(
    ("pool", "machine", "atom"),
    [
        ({"sharing": "TIMESLICE"}, ONE_GPU, "GPU-whole/s3"),
        ({"class": "METAL_DEDICATED"}, ONE_GPU, "node"),
        ({}, {"gpus": {"enumeration": "complete", "gpus": [{**WHOLE, **SPLIT}]}}, "GPU-whole/gi1/ci0"),
    ],
)
async def test_hardware_that_is_reserved_is_given_to_nobody_else_for_that_time_whatever_becomes_of_the_atom(
    database: Database, server: RunningServer, pool: dict[str, Any], machine: Mapping[str, Any], atom: str
) -> None:
    node_id = await _node(database, server, machine)
    await _assign(server, node_id, await _pool(server, "one", **pool))
    await apply_pending(database, utc_now)
    assert await _claim(server, "s1", node_id if atom == "node" else atom, 2, 4) == "OK"
    await _assign(server, node_id, None)
    await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": []}})
    await apply_pending(database, utc_now)
    await ingest(server.agent, node_id, {"gpus": {"enumeration": "complete", "gpus": [WHOLE]}})
    await apply_pending(database, utc_now)
    assert (await _devices(server, node_id))["GPU-whole"]["bookable"]

    assert await _capacity(server, "gpu") == (0, 1, 0)
    assert await _claim(server, "s2", "GPU-whole", 0) == "CONFLICT"
    assert await _claim(server, "s2", "GPU-whole", 3) == "CONFLICT"
    assert await _claim(server, "s2", "GPU-whole", 0, 1) == "OK"
    assert await _claim(server, "s3", "GPU-whole", 5) == "OK"
    await server.operator.data(RELEASE, shard="s1")
    assert await _claim(server, "s4", "GPU-whole", 2, 4) == "OK"


async def _let_begin(database: Database) -> None:
    """Let three hours pass for what is booked, and for what waits for it."""
    async with database.transaction() as tx:
        for table in ("bookings", "allocations"):
            await tx.execute(
                f"update {table} set during = tstzrange(lower(during) - interval '3 hours', "  # noqa: S608 - ours
                "upper(during) - interval '3 hours')"
            )
        await tx.execute("update node_inventory set due_at = due_at - interval '3 hours'")


async def test_a_reserved_slot_that_its_pool_took_away_waits_and_is_an_atom_while_it_is_held(
    database: Database, server: RunningServer
) -> None:
    def flags(device: dict[str, Any]) -> tuple[bool, bool, bool]:
        return device["bookable"], device["healthy"], device["missing"]

    async def look_again() -> int:
        planned = (await conflicts(database).activate()).done
        await apply_pending(database, utc_now)
        assert (await conflicts(database).activate()).done == 0
        return planned

    node_id = await _node(database, server, ONE_GPU)
    pool_id = await _pool(server, "one", sharing="TIMESLICE")
    await _assign(server, node_id, pool_id)
    await apply_pending(database, utc_now)
    for shard, slot in (("s1", "s3"), ("s2", "s2")):
        assert await _claim(server, shard, f"GPU-whole/{slot}", 2, 4) == "OK"
    await server.operator.data(UPDATE_POOL, id=pool_id, input={"sharing": "EXCLUSIVE"})
    await apply_pending(database, utc_now)
    waiting = {each: flags(device) for each, device in (await _devices(server, node_id)).items()}
    reserved = (False, True, True)
    assert waiting == {"GPU-whole": (True, True, False), "GPU-whole/s2": reserved, "GPU-whole/s3": reserved}
    assert await _capacity(server, "gpu.slot") == (0, 2, 0)
    assert await _claim(server, "s3", "GPU-whole/s3", 0, 1) == "CONFLICT"
    assert await look_again() == 0

    await server.operator.data(RELEASE, shard="s2")
    assert await look_again() == 1
    assert list(await _devices(server, node_id)) == ["GPU-whole", "GPU-whole/s3"]
    await _let_begin(database)
    assert await look_again() == 1
    held = {each: flags(device) for each, device in (await _devices(server, node_id)).items()}
    assert held == {"GPU-whole": (False, True, False), "GPU-whole/s3": (True, True, True)}
    assert await _capacity(server, "gpu.slot") == (1, 0, 0)
    await server.operator.data(RELEASE, shard="s1")
    assert await look_again() == 1
    assert await _atoms(server, node_id) == list(await _devices(server, node_id)) == ["GPU-whole"]


async def test_a_vanished_device_stays_while_it_is_booked_and_leaves_afterwards(
    database: Database, server: RunningServer
) -> None:
    node_id = await _node(database, server)
    await book(database, node_id, "GPU-whole", FUNCTIONS[1])
    await ingest(
        server.agent,
        node_id,
        {"gpus": {"enumeration": "complete", "gpus": [PARTED]}, "nics": {"nics": [{**NICS["nics"][0], "vfs": []}]}},
    )
    await apply_pending(database, utc_now)
    devices = await _devices(server, node_id)
    assert {each for each, device in devices.items() if device["missing"]} == {"GPU-whole", FUNCTIONS[1]}
    assert not devices["GPU-whole"]["healthy"]
    assert FUNCTIONS[0] not in devices
    await end_bookings(database, "GPU-whole", FUNCTIONS[1])
    await conflicts(database).activate()
    await apply_pending(database, utc_now)
    assert set(await _devices(server, node_id)) == {"0c:42:a1:00:00:01", "GPU-parted", *INSTANCES}


async def test_functions_that_come_and_go_are_no_change_of_hardware(database: Database, server: RunningServer) -> None:
    node_id = await _node(database, server)
    port = NICS["nics"][0]
    await ingest(server.agent, node_id, {"nics": {"nics": [{**port, "vfs": [{"index": 7}]}]}})
    await apply_pending(database, utc_now)
    async with database.transaction() as tx:
        told = await tx.fetch(
            "select type, payload from outbox where type like any ('{node.inventory.%,node.nic.%}') order by sequence"
        )
    assert [row.type for row in told] == ["node.inventory.changed", "node.inventory.changed"]
    assert told[1].payload["changes"] == []
    devices = await _devices(server, node_id)
    assert [each for each in devices if "/vf" in each] == ["0c:42:a1:00:00:01/vf7"]
