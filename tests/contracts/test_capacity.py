"""Capacity adds up, and is what a plain model of the same claims says; so is what is granted and refused."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from db.database import Database
from tests.support.atoms import add_atoms, set_devices, set_node
from tests.support.server import RunningServer, hello, running_server

ALLOCATE = "mutation ($input: AllocateInput!) { allocate(input: $input) { created devices { id } } }"
RELEASE = "mutation ($shard: ID) { release(shardId: $shard) { shardId } }"
COUNTS = "{ resource allocatable allocated reserved available }"
CAPACITY = f"""
query ($pool: ID!, $first: ID!) {{
  fleet: fleetSummary {{ capacity {COUNTS} }}
  one: fleetSummary(filter: {{id: [$first]}}) {{ capacity {COUNTS} }}
  pool: node(id: $pool) {{ ... on Pool {{ capacity {COUNTS} }} }}
  page: pools {{ nodes {{ capacity {COUNTS} }} }}
}}
"""
SITE = 'mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'
POOL = 'mutation ($site: ID!) { createPool(input: {name: "p", siteId: $site}) { id } }'
ASSIGN = "mutation ($node: ID!, $pool: ID!) { assignPool(id: $node, poolId: $pool) { id } }"

FIRST, SECOND = "FIRST", "SECOND"
"""Stand for the ids of the two nodes; the first is an atom as a whole too."""
CLASSES: Final = {
    "a1": "gpu",
    "a2": "gpu",
    "b": "gpu",
    "b/s0": "gpu.slot",
    "b/s1": "gpu.slot",
    FIRST: "node",
    "c1": "gpu",
    "v1": "nic.vf",
}
NODE_OF: Final = {**dict.fromkeys(("a1", "a2", "b", "b/s0", "b/s1", FIRST), FIRST), "c1": SECOND, "v1": SECOND}
PARENTS: Final = {"b/s0": "b", "b/s1": "b"}

Window: TypeAlias = tuple[int, int | None]
"""Hours from now; an end of None is none."""
WINDOWS: Final[tuple[Window, ...]] = ((0, None), (0, 1), (2, 4), (3, None))
Step: TypeAlias = tuple[Any, ...]

STEPS = st.one_of(
    st.tuples(
        st.just("named"),
        st.sampled_from(("s1", "s2", "s3")),
        st.lists(st.sampled_from(sorted(CLASSES)), min_size=1, max_size=2, unique=True).map(tuple),
        st.sampled_from(WINDOWS),
    ),
    st.tuples(
        st.just("counted"),
        st.sampled_from(("s1", "s2", "s3")),
        st.sampled_from(("gpu", "gpu.slot")),
        st.integers(1, 2),
        st.sampled_from(WINDOWS),
    ),
    st.tuples(st.just("release"), st.sampled_from(("s1", "s2", "s3"))),
    st.tuples(st.just("health"), st.sampled_from(("a1", "b", "b/s0", "c1")), st.booleans()),
    st.tuples(st.just("cordon"), st.sampled_from((FIRST, SECOND)), st.booleans()),
)


@dataclass(slots=True)
class Model:
    """What is held by whom, and what can be given."""

    held: dict[str, tuple[tuple[str, ...], Window, Step]] = field(default_factory=dict)
    sick: set[str] = field(default_factory=set)
    cordoned: set[str] = field(default_factory=set)

    def names(self, device: str) -> set[str]:
        whole = {FIRST} if NODE_OF[device] == FIRST else set()
        return {device, PARENTS.get(device, device)} | whole

    def is_held(self, device: str, window: Window) -> bool:
        return any(
            overlap(window, taken) and (other in self.names(device) or device in self.names(other))
            for devices, taken, _ in self.held.values()
            for other in devices
        )

    def usable(self, device: str) -> bool:
        return not self.sick & {device, PARENTS.get(device, device)} and NODE_OF[device] not in self.cordoned

    def free(self, device: str, window: Window) -> bool:
        return self.usable(device) and not self.is_held(device, window)

    def named(self, devices: tuple[str, ...], window: Window) -> str:
        """Return the code with which a request by id is answered."""
        if len({NODE_OF[device] for device in devices}) > 1:
            return "INVALID_INPUT"
        entangled = any(one != other and one in self.names(other) for one in devices for other in devices)
        if NODE_OF[devices[0]] in self.cordoned:
            return "CONFLICT"
        if entangled:
            return "INVALID_INPUT"
        return "OK" if all(self.free(device, window) for device in devices) else "CONFLICT"

    def again(self, shard: str, step: Step) -> tuple[str, tuple[str, ...]]:
        """Return how a shard is answered that holds something already."""
        devices, window, before = self.held[shard]
        # Any other window is of other times by now.
        same = step == before and window == (0, None)
        return ("OK", devices) if same else ("CONFLICT", ())

    def capacity(self, *nodes: str) -> list[dict[str, Any]]:
        """Count the atoms of these nodes."""
        found = []
        for resource in sorted(set(CLASSES.values())):
            of_class = [each for each in CLASSES if CLASSES[each] == resource and NODE_OF[each] in nodes]
            allocated = [device for device in of_class if self.is_held(device, (0, 0))]
            later = [device for device in of_class if device not in allocated and self.is_held(device, (0, None))]
            available = [device for device in of_class if self.free(device, (0, None))]
            counts = {"allocated": len(allocated), "reserved": len(later), "available": len(available)}
            if of_class:
                found.append({"resource": resource, "allocatable": sum(counts.values()), **counts})
        return found


def overlap(one: Window, other: Window) -> bool:
    """Say whether two windows share a moment; (0, 0) stands for now."""
    first, second = sorted((one, other), key=lambda window: window[0])
    return first[1] is None or second[0] < first[1] or first == (0, 0) == (second[0], 0)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The same hardware in the running server."""

    server: RunningServer
    database: Database
    ids: dict[str, str]
    pool: str

    def id(self, name: str) -> str:
        return self.ids.get(name, name)

    async def allocate(self, shard: str, window: Window, asked: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        base = datetime.now(UTC)
        times = {"from": window[0], "to": window[1]}
        during = {key: (base + timedelta(hours=hour)).isoformat() for key, hour in times.items() if hour}
        given = {"shardId": shard, "during": during, **asked}
        answer = await self.server.operator.send(ALLOCATE, input=given)
        if "errors" in answer:
            return answer["errors"][0]["extensions"]["code"], ()
        names = {real: name for name, real in self.ids.items()}
        devices = answer["data"]["allocate"]["devices"]
        return "OK", tuple(names.get(each["id"], each["id"]) for each in devices)


async def make_fleet(server: RunningServer, database: Database) -> Fleet:
    first, second = [await hello(server.agent, name) for name in (FIRST, SECOND)]
    site = (await server.operator.data(SITE))["createSite"]["id"]
    pool = (await server.operator.data(POOL, site=site))["createPool"]["id"]
    await server.operator.data(ASSIGN, node=first, pool=pool)
    await add_atoms(database, first, "a1", "a2", "b")
    await add_atoms(database, first, "b/s0", "b/s1", device_class="gpu.slot", parent="b")
    await add_atoms(database, first, first, device_class="node")
    await add_atoms(database, second, "c1")
    await add_atoms(database, second, "v1", device_class="nic.vf")
    return Fleet(server, database, {FIRST: first, SECOND: second}, pool)


async def take(fleet: Fleet, model: Model, step: Step) -> None:
    """Do a step in both worlds, and compare what is answered."""
    match step:
        case ("named", shard, devices, window):
            code, got = await fleet.allocate(shard, window, {"deviceIds": [fleet.id(each) for each in devices]})
            if shard in model.held:
                assert (code, got) == model.again(shard, step)
                return
            assert code == model.named(devices, window)
            if code == "OK":
                assert sorted(got) == sorted(devices)
                model.held[shard] = (got, window, step)
        case ("counted", shard, kind, count, window):
            like = {"class": {"gpu": "GPU", "gpu.slot": "GPU_SLOT"}[kind]}
            code, got = await fleet.allocate(shard, window, {"count": count, "selector": like})
            if shard in model.held:
                assert (code, got) == model.again(shard, step)
                return
            free = [each for each in CLASSES if CLASSES[each] == kind and model.free(each, window)]
            by_node = [sum(NODE_OF[each] == node for each in free) for node in (FIRST, SECOND)]
            assert code == ("OK" if max(by_node) >= count else "CONFLICT")
            if code == "OK":
                assert len(got) == count
                assert set(got) <= set(free)
                model.held[shard] = (got, window, step)
        case ("release", shard):
            ended = (await fleet.server.operator.data(RELEASE, shard=shard))["release"]
            assert ended == ([{"shardId": shard}] if model.held.pop(shard, None) else [])
        case ("health", device, healthy):
            await set_devices(fleet.database, device, healthy=healthy)
            (model.sick.discard if healthy else model.sick.add)(device)
        case ("cordon", node, cordoned):
            await set_node(fleet.database, fleet.id(node), cordoned=cordoned)
            (model.cordoned.add if cordoned else model.cordoned.discard)(node)


async def start_over(fleet: Fleet) -> None:
    async with fleet.database.transaction() as tx:
        await tx.execute("delete from allocations")
        await tx.execute("update devices set healthy = true")
        await tx.execute("update nodes set cordoned = false")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=40
)
@example(steps=[("named", "s1", ("a1",), (0, None)), ("named", "s2", (FIRST,), (0, None))])
@example(
    steps=[
        ("named", "s1", (FIRST,), (2, 4)),
        ("named", "s2", ("b/s1",), (3, None)),
        ("counted", "s3", "gpu", 2, (0, 1)),
    ]
)
@example(steps=[("named", "s1", ("b/s0",), (2, None)), ("named", "s2", ("b",), (0, None)), ("health", "b", False)])
@example(steps=[("named", "s1", ("b",), (0, 1)), ("named", "s2", ("b/s1",), (0, None)), ("release", "s1")])
@given(steps=st.lists(STEPS, min_size=1, max_size=12))
async def test_what_is_granted_and_what_is_left_are_what_a_plain_model_says(
    server: RunningServer, database: Database, steps: list[Step]
) -> None:
    async with database.session() as session:
        made = await session.value("select count(*) from nodes")
    fleet = MADE[id(database)] if made else MADE.setdefault(id(database), await make_fleet(server, database))
    await start_over(fleet)
    model = Model()
    for step in steps:
        await take(fleet, model, step)
        found = await server.operator.data(CAPACITY, pool=fleet.pool, first=fleet.id(FIRST))
        of_first = model.capacity(FIRST)
        assert found == {
            "fleet": {"capacity": model.capacity(FIRST, SECOND)},
            "one": {"capacity": of_first},
            "pool": {"capacity": of_first},
            "page": {"nodes": [{"capacity": of_first}]},
        }


MADE: Final[dict[int, Fleet]] = {}
"""The fleet of the database that all examples share."""


async def test_both_ways_of_reading_count_the_same(server: RunningServer, database: Database) -> None:
    fleet = await make_fleet(server, database)
    await fleet.allocate("s1", (0, None), {"deviceIds": ["a1"]})
    await fleet.allocate("s2", (2, None), {"deviceIds": ["b/s0"]})
    query = f"""
    query ($pool: ID!, $node: ID!) {{
      node(id: $pool) {{ ... on Pool {{ capacity {COUNTS} nodes {{ nodes {{ pool {{ capacity {COUNTS} }} }} }} }} }}
      computeNode(id: $node) {{
        allocations {{ shardId degraded during {{ from to }} devices {{ id bookings {{ during {{ from to }} }} }} }}
      }}
    }}
    """
    compiled = await server.operator.data(query, pool=fleet.pool, node=fleet.id(FIRST))
    async with running_server(database, reconcile=False, compiled_reads=False) as plain:
        assert await plain.operator.data(query, pool=fleet.pool, node=fleet.id(FIRST)) == compiled
    assert [each["shardId"] for each in compiled["computeNode"]["allocations"]] == ["s1", "s2"]


async def test_a_stranger_counts_nothing_of_ours(server: RunningServer, database: Database) -> None:
    await make_fleet(server, database)
    assert (await server.stranger.data(f"{{ fleetSummary {{ capacity {COUNTS} }} }}"))["fleetSummary"] == {
        "capacity": []
    }
