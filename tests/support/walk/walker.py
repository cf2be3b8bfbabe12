"""The walk: who walks, the rack that is changed, the model, and the server that has to agree with it."""

import random
from dataclasses import dataclass, field
from typing import Any, Final

from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.rows import Rows, written_rows
from tests.support.server import RunningServer, hello
from tests.support.walk.hardware import Card, Machine
from tests.support.walk.model import Fleet, Node, Pool
from web.app import utc_now

NODES: Final = ("n1", "n2")
SITE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'
POOL: Final = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"


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

    def card(self, machine: Machine) -> str | None:
        """Return a GPU of a machine, more often one of which something is booked: that is where plans bend."""
        booked = {device.split("/")[0] for booking in self.fleet.bookings.values() for device in booking.places}
        held = sorted(booked & machine.cards.keys())
        among = held if held and self.chance.random() < 0.7 else sorted(machine.cards)
        return self.chance.choice(among) if among else None

    def machine(self, node: Node) -> Machine:
        """Return what stands in the rack as this node."""
        return self.machines[node.id]

    async def operate(self, query: str, **variables: Any) -> str:  # noqa: ANN401 - any variable
        """Return the code with which an operator is answered."""
        answer = await self.server.operator.send(query, **variables)
        return str(answer["errors"][0]["extensions"]["code"]) if "errors" in answer else "OK"

    async def rows(self) -> Rows:
        """Return every row as it was written."""
        async with self.database.session() as session:
            return await written_rows(session)

    async def settle(self) -> None:
        """Let the reconcilers, and the model, come to rest."""
        self.fleet.settle()
        for _ in range(2):
            await apply_pending(self.database, utc_now)
            await conflicts(self.database).activate()
        await apply_pending(self.database, utc_now)


async def begin(chance: random.Random, server: RunningServer, database: Database) -> Walk:
    """Make a fleet of two nodes and two pools, in the server and in the model."""
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
