"""A random walk: whatever is reported, booked, pooled, trusted and labelled, the fleet is what a plain model says."""

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from db.database import Database
from reconcilers.inventory import apply_pending, conflicts
from tests.support.rows import Rows, written_rows
from tests.support.server import INGEST, RECORD, RunningServer, hash_of, hello, running_server, section
from tests.support.walk.hardware import SECTIONS, Card, Machine, Report
from tests.support.walk.model import ATOMS, CONTROLLED, MODELLED, Booking, Fleet, Node, Pool, Row, total
from web.app import utc_now

STEPS: Final = 60
NODES: Final = ("n1", "n2")
KEYS: Final = ("zone", "rack", "tier")
LAYOUTS: Final = ((), ((1, 0),), ((1, 0), (1, 1), (2, 0)))

WAIVED: Final = ("role=", "observedGeneration=", "connectivity=disconnected")
"""What is told of a node and refuses no claim."""

COUNTS: Final = "{ resource allocatable allocated reserved available }"
STATE: Final = f"""
{{
  nodes {{ nodes {{
    hostname noScheduleReasons unschedulableReasons labels {{ key value source }} conditions {{ type status }}
    devices(first: 200) {{ nodes {{ id class parent {{ id }} bookable healthy missing partitionPending }} }}
  }} }}
  fleetSummary {{ capacity {COUNTS} }}
  pools {{ nodes {{ id capacity {COUNTS} }} }}
}}
"""
ALLOCATE: Final = "mutation ($input: AllocateInput!) { allocate(input: $input) { devices { id } } }"
RELEASE: Final = "mutation ($shard: ID) { release(shardId: $shard) { shardId } }"
SITE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'
POOL: Final = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
DIVIDE: Final = "mutation ($id: ID!, $input: PoolPatch!) { updatePool(id: $id, input: $input) { id } }"
ASSIGN: Final = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
END: Final = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { id } }"
LABEL: Final = """
mutation ($id: ID!, $set: [LabelInput!]!, $remove: [String!]!) { labelNode(id: $id, set: $set, remove: $remove) { id } }
"""


@dataclass
class Walk:
    """The walker, the rack it changes, the model, and the server that has to agree with it."""

    chance: random.Random
    server: RunningServer
    database: Database
    fleet: Fleet
    machines: dict[str, Machine]
    pools: dict[str, str]
    done: list[str] = field(default_factory=list)
    sent: set[tuple[str, str, str]] = field(default_factory=set)
    shards: int = 0

    @property
    def node(self) -> Node:
        """A node of the fleet."""
        return self.fleet.nodes[self.chance.choice(NODES)]

    def machine(self, node: Node) -> Machine:
        """Return what stands in the rack as this node."""
        return self.machines[node.id]

    async def operate(self, query: str, **variables: Any) -> str:  # noqa: ANN401 - any variable
        """Return the code with which an operator is answered."""
        answer = await self.server.operator.send(query, **variables)
        return str(answer["errors"][0]["extensions"]["code"]) if "errors" in answer else "OK"


Step = Callable[[Walk], Coroutine[Any, Any, None]]


async def move_card(walk: Walk) -> None:
    """Put a GPU into the other machine; nobody knows before it is reported."""
    one, other = walk.chance.sample(sorted(walk.machines), 2)
    if cards := walk.machines[one].cards:
        uuid = walk.chance.choice(sorted(cards))
        walk.machines[other].cards[uuid] = cards.pop(uuid)


async def change_host(walk: Walk) -> None:
    """Change what else stands in the rack."""
    machine = walk.machine(walk.node)
    machine.functions = walk.chance.choice([None, 0, 1, 2, 2])
    machine.disks = frozenset(walk.chance.sample(range(3), walk.chance.randrange(3)))
    machine.images = frozenset(walk.chance.sample(["os:1", "os:2"], walk.chance.randrange(3)))
    machine.kernel = f"6.{walk.chance.randrange(3)}.0"


async def change_card(walk: Walk) -> None:
    """Change the MIG mode or the layout of a GPU, or lose it."""
    machine = walk.machine(walk.node)
    if not machine.cards:
        return
    uuid, card = walk.chance.choice(sorted(machine.cards.items()))
    layout = walk.chance.choice(LAYOUTS)
    changed = {
        "off": Card(uuid, card.family),
        "turning on": Card(uuid, card.family, pending=True),
        "on": Card(uuid, card.family, current=True, pending=True, layout=layout),
        "turning off": Card(uuid, card.family, current=True, layout=layout),
        "lost": replace(card, lost=not card.lost),
    }
    machine.cards[uuid] = changed[walk.chance.choice(list(changed))]


async def report(walk: Walk) -> None:
    """Report a machine: mostly in full, sometimes cut short or without some sections."""
    node = walk.node
    machine = walk.machine(node)
    cards = sorted(machine.cards)
    enumeration = walk.chance.choice(["complete", "complete", "complete", "incomplete", "unavailable"])
    shown = {"complete": cards, "incomplete": walk.chance.sample(cards, len(cards) // 2), "unavailable": []}
    left_out = walk.chance.sample(SECTIONS[1:], walk.chance.choice([0, 0, 0, 2]))
    said = machine.report(enumeration, shown[enumeration], set(SECTIONS) - set(left_out))
    await _send(walk, node, said)
    walk.fleet.take(node, said)


async def heartbeat(walk: Walk) -> None:
    """Say the same again: no row of inventory is written."""
    node = walk.node
    if node.last is None:
        return
    before = await _rows(walk)
    await _send(walk, node, node.last)
    after = await _rows(walk)
    assert {**after, "node_liveness": before["node_liveness"]} == before


async def _send(walk: Walk, node: Node, said: Report) -> None:
    sections = [section(name, document) for name, document in said.sections.items()]
    entry = {"nodeId": node.id, "hashes": [hash_of(each) for each in sections]}
    (slot,) = (await walk.server.agent.data(RECORD, entries=[entry]))["recordInventoryHashes"]
    missing = {(node.id, each["name"], each["sha256"]) for each in sections} - walk.sent
    assert set(slot["requestSections"]) == {name for _, name, _ in missing}
    if missing:
        wanted = [each for each in sections if each["name"] in slot["requestSections"]]
        await walk.server.agent.data(INGEST, entries=[{"nodeId": node.id, "sections": wanted}])
        walk.sent |= missing


async def allocate(walk: Walk) -> None:
    """Ask for devices, mostly for one that is an atom."""
    reasons = {node.id: await _reasons(walk, node) for node in walk.fleet.nodes.values()}
    among = sorted(device for node in walk.fleet.nodes.values() for device in node.rows)
    if walk.chance.random() < 0.8:
        among = [device for device in among if walk.fleet.answer((device,), reasons, later=False) == "OK"] or among
    if not among:
        return
    devices = tuple(walk.chance.sample(among, min(len(among), walk.chance.choice([1, 1, 2]))))
    later = walk.chance.random() < 0.3
    expected = walk.fleet.answer(devices, reasons, later=later)
    walk.shards += 1
    now = datetime.now(UTC)
    times = {"from": now + timedelta(hours=2)} if later else {"to": now + timedelta(hours=1)}
    during = {name: time.isoformat() for name, time in times.items()}
    given = {"shardId": f"s{walk.shards}", "deviceIds": list(devices), "during": during}
    assert await walk.operate(ALLOCATE, input=given) == expected, (devices, later)
    if expected == "OK":
        node = walk.fleet.node_of(devices[0])
        assert node is not None
        walk.fleet.bookings[f"s{walk.shards}"] = Booking(dict.fromkeys(devices, node.id), later)


async def _reasons(walk: Walk, node: Node) -> set[str]:
    """Return why the node's conditions keep work off it: those that the model knows of as it says."""
    async with walk.database.session() as session:
        found = set(await session.value("select no_schedule_reasons from nodes where id = $1", node.id))
    return (found - MODELLED) | {name for name in MODELLED if node.conditions.get(name)}


async def release(walk: Walk) -> None:
    """End what a shard holds."""
    if walk.fleet.bookings:
        shard = walk.chance.choice(sorted(walk.fleet.bookings))
        assert await walk.operate(RELEASE, shard=shard) == "OK"
        del walk.fleet.bookings[shard]


async def assign(walk: Walk) -> None:
    """Put a node into another pool, or into none."""
    node = walk.node
    node.pool = walk.chance.choice([None, *walk.pools])
    pool = walk.pools[node.pool] if node.pool else None
    assert await walk.operate(ASSIGN, id=node.id, pool=pool) == "OK"


async def divide(walk: Walk) -> None:
    """Divide the nodes of a pool in another way."""
    name = walk.chance.choice(sorted(walk.pools))
    pool = walk.fleet.pools[name]
    pool.sharing = walk.chance.choice(["EXCLUSIVE", "MIG", "TIMESLICE", "MPS"])
    pool.replicas = walk.chance.choice([None, 1, 3])
    policy = {"sharing": {"replicas": pool.replicas}} if pool.replicas else {}
    assert await walk.operate(DIVIDE, id=walk.pools[name], input={"sharing": pool.sharing, "policy": policy}) == "OK"


async def trust(walk: Walk) -> None:
    """Give a node to its tenant, or take it back."""
    node = walk.node
    node.trust = walk.chance.choice(["PLATFORM", "PLATFORM", "TENANT_OWNED", CONTROLLED])
    assert await walk.operate(TRUST, id=node.id, trust=node.trust) == "OK"


async def end_advisory(walk: Walk) -> None:
    """Take the next report for real."""
    node = walk.node
    can_end = node.advisory and node.trust != CONTROLLED
    assert await walk.operate(END, id=node.id) == ("OK" if can_end else "CONFLICT")
    if can_end:
        node.last, node.advisory = None, False


async def label(walk: Walk) -> None:
    """Set and remove labels as an operator, some of them not an operator's."""
    node = walk.node
    own = node.labels["OPERATOR"]
    keys = walk.chance.sample([*KEYS, "gpu.model"], 2)
    put, remove = {keys[0]: f"o{walk.chance.randrange(3)}"}, [keys[1]]
    given = [{"key": key, "value": value} for key, value in put.items()]
    refused = "gpu.model" in keys
    code = await walk.operate(LABEL, id=node.id, set=given, remove=remove)
    assert code == ("INVALID_INPUT" if refused else "OK")
    if not refused:
        node.labels["OPERATOR"] = {key: value for key, value in {**own, **put}.items() if key not in remove}


async def greet(walk: Walk) -> None:
    """Say hello with labels and a driver; a tenant's word is not taken."""
    node = walk.node
    said = {key: f"a{walk.chance.randrange(3)}" for key in walk.chance.sample(KEYS, 2)}
    version = walk.chance.choice(["1.0", "1.1"])
    labels = [{"key": key, "value": value} for key, value in said.items()]
    name = walk.machine(node).number
    await hello(walk.server.agent, f"n{name}", labels=labels, drivers=[{"id": "vm", "version": version}])
    if node.trust != CONTROLLED:
        node.labels["AGENT"] = said
        node.labels["SYSTEM"] = {"bc.dev/driver.vm": version}


WEIGHTS: Final[dict[Step, int]] = {
    move_card: 3,
    change_host: 2,
    change_card: 4,
    report: 12,
    heartbeat: 1,
    allocate: 8,
    release: 4,
    assign: 2,
    divide: 2,
    trust: 2,
    end_advisory: 2,
    label: 1,
    greet: 1,
}


async def _rows(walk: Walk) -> Rows:
    async with walk.database.session() as session:
        return await written_rows(session)


async def _settle(walk: Walk) -> None:
    walk.fleet.settle()
    for _ in range(2):
        await apply_pending(walk.database, utc_now)
        await conflicts(walk.database).activate()
    await apply_pending(walk.database, utc_now)


async def _check(walk: Walk, before: Rows) -> Rows:
    """Compare the server with the model, and see that looking again writes nothing."""
    nodes = walk.fleet.nodes
    state = await walk.server.operator.data(STATE)
    capacities: dict[str, dict[str, dict[str, int]]] = {}
    for found in state["nodes"]["nodes"]:
        node = nodes[found["hostname"]]
        devices = {each["id"]: _row(each) for each in found["devices"]["nodes"]}
        assert devices == node.rows
        labels = {each["key"]: (each["value"], each["source"]) for each in found["labels"]}
        assert labels == node.effective_labels()
        conditions = {each["type"]: each["status"] == "TRUE" for each in found["conditions"]}
        assert {name: conditions.get(name) for name in node.conditions} == node.conditions
        reasons = set(found["noScheduleReasons"])
        assert reasons & MODELLED == {name for name in MODELLED if node.conditions.get(name)}
        closed = walk.fleet.closed(node, reasons)
        assert closed == any(not each.startswith(WAIVED) for each in found["unschedulableReasons"])
        capacities[node.id] = walk.fleet.capacity(node, closed=closed)
    assert state["fleetSummary"]["capacity"] == total(*capacities.values())
    for pool in state["pools"]["nodes"]:
        inside = [node.id for node in nodes.values() if node.pool and walk.pools[node.pool] == pool["id"]]
        assert pool["capacity"] == total(*(capacities[each] for each in inside))
    async with walk.database.session() as session:
        cached = await session.fetch("select node_id, reference from node_image_cache")
    assert {tuple(row) for row in cached} == {(node.id, each) for node in nodes.values() for each in node.images}
    after = await _rows(walk)
    _check_history(walk, before, after)
    await _settle(walk)
    again = await _rows(walk)
    # A node whose device another one owns is looked at again and again, and only its own row says so.
    if any(node.conditions.get("DuplicateIdentity") for node in nodes.values()):
        again["node_inventory"] = after["node_inventory"]
    assert again == after
    return again


def _check_history(walk: Walk, before: Rows, after: Rows) -> None:
    """Snapshots are only added, and of each section's bytes there is one copy."""
    assert set(before["inventory_snapshots"]) <= set(after["inventory_snapshots"])
    assert set(before["inventory_sections"]) <= set(after["inventory_sections"])
    assert len(after["inventory_snapshots"]) == sum(node.snapshots for node in walk.fleet.nodes.values())
    assert len(after["inventory_sections"]) == len(walk.sent)


def _row(device: dict[str, Any]) -> Row:
    parent = device["parent"]["id"] if device["parent"] else None
    kind = device["class"].lower().replace("_", ".")
    assert device["bookable"] is False or kind in ATOMS
    flags = (device["bookable"], device["healthy"], device["missing"], device["partitionPending"])
    return Row(kind, parent, *flags)


async def _begin(chance: random.Random, server: RunningServer, database: Database) -> Walk:
    site = (await server.operator.data(SITE))["createSite"]["id"]
    kinds = {"metal": ("METAL_HOST", Pool(metal=True)), "shared": ("VPS_HOST", Pool(metal=False, sharing="TIMESLICE"))}
    pools = {}
    for name, (kind, pool) in kinds.items():
        given = {"name": name, "siteId": site, "class": kind, "sharing": pool.sharing}
        pools[name] = (await server.operator.data(POOL, input=given))["createPool"]["id"]
    fleet = Fleet({}, {name: pool for name, (_, pool) in kinds.items()})
    walk = Walk(chance, server, database, fleet, {}, pools)
    for number, name in enumerate(NODES, 1):
        node = Node(await hello(server.agent, name))
        fleet.nodes[name] = node
        families = ["H100", "H100", chance.choice([*["A100"] * 7, "other"])]
        uuids = [f"GPU-{number}{each}1c8d2a-1111-4222-8333-444444444444" for each in range(3)]
        cards = {uuid: Card(uuid, family) for uuid, family in zip(uuids, families, strict=True)}
        walk.machines[node.id] = Machine(number, cards)
    return walk


@pytest.mark.parametrize("seed", range(2))
async def test_a_fleet_is_what_a_plain_model_says_after_every_step(database: Database, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    async with running_server(database, reconcile=False) as server:
        walk = await _begin(chance, server, database)
        rows = await _check(walk, await _rows(walk))
        for step in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
            walk.done.append(step.__name__)
            try:
                await step(walk)
                await _settle(walk)
                rows = await _check(walk, rows)
            except AssertionError as error:
                error.add_note(f"after {', '.join(walk.done)}")
                raise
