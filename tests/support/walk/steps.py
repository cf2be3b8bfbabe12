"""The steps of the walk, each taken by the server and by the model."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.support.server import INGEST, RECORD, hash_of, hello, section
from tests.support.walk.hardware import SECTIONS, Card, Report
from tests.support.walk.model import ATOMS, CONTROLLED, MODELLED, Booking, Node
from tests.support.walk.walker import Walk

KEYS: Final = ("zone", "rack", "tier")
LAYOUTS: Final = ((), ((1, 0),), ((1, 0), (1, 1), (2, 0)))
ALLOCATE: Final = "mutation ($input: AllocateInput!) { allocate(input: $input) { devices { id } } }"
RELEASE: Final = "mutation ($shard: ID) { release(shardId: $shard) { shardId } }"
DIVIDE: Final = "mutation ($id: ID!, $input: PoolPatch!) { updatePool(id: $id, input: $input) { id } }"
ASSIGN: Final = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
END: Final = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { id } }"
LABEL: Final = """
mutation ($id: ID!, $set: [LabelInput!]!, $remove: [String!]!) { labelNode(id: $id, set: $set, remove: $remove) { id } }
"""


Step = Callable[[Walk], Coroutine[Any, Any, None]]


async def move_card(walk: Walk) -> None:
    """Put a GPU into the other machine, of which often one or the other reports."""
    one, other = walk.chance.sample(list(walk.fleet.nodes.values()), 2)
    uuid = walk.card(walk.machine(one))
    if uuid is not None:
        walk.machine(other).cards[uuid] = walk.machine(one).cards.pop(uuid)
        await _perhaps_report(walk, walk.chance.choice([one, other]))


async def change_host(walk: Walk) -> None:
    """Change what else stands in the rack."""
    node = walk.node
    machine = walk.machine(node)
    machine.functions = walk.chance.choice([None, 0, 1, 2, 2])
    machine.disks = frozenset(walk.chance.sample(range(3), walk.chance.randrange(3)))
    machine.images = frozenset(walk.chance.sample(["os:1", "os:2"], walk.chance.randrange(3)))
    machine.kernel = f"6.{walk.chance.randrange(3)}.0"
    await _perhaps_report(walk, node)


async def change_card(walk: Walk) -> None:
    """Change the MIG mode or the layout of a GPU, or lose it."""
    node = walk.node
    machine = walk.machine(node)
    uuid = walk.card(machine)
    if uuid is None:
        return
    card = machine.cards[uuid]
    layout = walk.chance.choice(LAYOUTS)
    changed = {
        "off": Card(uuid, card.family),
        "turning on": Card(uuid, card.family, pending=True),
        "on": Card(uuid, card.family, current=True, pending=True, layout=layout),
        "turning off": Card(uuid, card.family, current=True, layout=layout),
        "lost": replace(card, lost=not card.lost),
    }
    machine.cards[uuid] = changed[walk.chance.choice(list(changed))]
    await _perhaps_report(walk, node)


async def report(walk: Walk) -> None:
    """Report a machine: mostly in full, sometimes cut short or without some sections."""
    node = walk.node
    machine = walk.machine(node)
    cards = sorted(machine.cards)
    enumeration = walk.chance.choice(["complete", "complete", "complete", "incomplete", "unavailable"])
    shown = {"complete": cards, "incomplete": walk.chance.sample(cards, len(cards) // 2), "unavailable": []}
    left_out = walk.chance.sample(SECTIONS[1:], walk.chance.choice([0, 0, 0, 2]))
    await _report(walk, node, machine.report(enumeration, shown[enumeration], set(SECTIONS) - set(left_out)))


async def _perhaps_report(walk: Walk, node: Node) -> None:
    machine = walk.machine(node)
    if walk.chance.random() < 0.6:
        await _report(walk, node, machine.report("complete", machine.cards, SECTIONS))


async def _report(walk: Walk, node: Node, said: Report) -> None:
    await _send(walk, node, said)
    walk.fleet.take(node, said)


async def heartbeat(walk: Walk) -> None:
    """Say the same again: no row of inventory is written."""
    node = walk.node
    if node.last is None:
        return
    before = await walk.rows()
    await _send(walk, node, node.last)
    after = await walk.rows()
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
    code, _ = await _ask(walk, {"deviceIds": list(devices)}, later=later)
    assert code == expected, (devices, later)


async def allocate_any(walk: Walk) -> None:
    """Ask for a number of devices of a class, on a node or on any."""
    kind, count = walk.chance.choice(sorted(ATOMS)), walk.chance.choice([1, 1, 2])
    later = walk.chance.random() < 0.3
    among = walk.chance.choice([[walk.node], list(walk.fleet.nodes.values())])
    free = [
        walk.fleet.free(node, kind, later=later)
        for node in among
        if not walk.fleet.closed(node, await _reasons(walk, node))
    ]
    where = {"nodeId": among[0].id} if len(among) == 1 else {}
    asked = {"count": count, "selector": {"class": kind.upper().replace(".", "_")}, **where}
    code, devices = await _ask(walk, asked, later=later)
    assert code == ("OK" if any(len(of_node) >= count for of_node in free) else "CONFLICT"), (asked, later)
    assert code != "OK" or (len(devices) == count and any(devices <= of_node for of_node in free))


async def _ask(walk: Walk, asked: dict[str, Any], *, later: bool) -> tuple[str, set[str]]:
    """Ask for devices as a new shard, and note what it gets; return the code and the devices."""
    walk.shards += 1
    shard, now = f"s{walk.shards}", datetime.now(UTC)
    times = {"from": now + timedelta(hours=2)} if later else {"to": now + timedelta(hours=1)}
    during = {name: time.isoformat() for name, time in times.items()}
    answer = await walk.server.operator.send(ALLOCATE, input={"shardId": shard, "during": during, **asked})
    if "errors" in answer:
        return str(answer["errors"][0]["extensions"]["code"]), set()
    devices = {device["id"] for device in answer["data"]["allocate"]["devices"]}
    places = {device: node.id for node in walk.fleet.nodes.values() for device in devices & node.rows.keys()}
    walk.fleet.bookings[shard] = Booking(places, later)
    return "OK", devices


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
    used = [node.pool for node in walk.fleet.nodes.values() if node.pool]
    name = walk.chance.choice(sorted(used or walk.pools))
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
    move_card: 4,
    change_host: 2,
    change_card: 6,
    report: 7,
    heartbeat: 1,
    allocate: 8,
    allocate_any: 3,
    release: 4,
    assign: 3,
    divide: 5,
    trust: 2,
    end_advisory: 2,
    label: 1,
    greet: 1,
}
