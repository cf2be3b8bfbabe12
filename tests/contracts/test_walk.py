"""A random walk: whatever is reported, booked, pooled, trusted and labelled, the fleet is what a plain model says."""

import random
from typing import Any, Final

import pytest

from db.database import Database
from tests.support.rows import Rows
from tests.support.server import running_server
from tests.support.walk.model import ATOMS, CONDITIONS, MODELLED, Row, total
from tests.support.walk.steps import WEIGHTS
from tests.support.walk.walker import Walk, begin

STEPS: Final = 60
SEEDS: Final = (8, 10, 26, 35, 37)
"""Any number is a walk; these come by vanished devices that are booked, moves, duplicates, tenants and slots.

35 and 37 come by what a pool takes away while it is reserved, 10 and 35 by sets that are silent on a duplicate.
"""
WAIVED: Final = ("observedGeneration=", "connectivity=disconnected")
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
        assert {name: conditions[name] for name in conditions.keys() & CONDITIONS} == node.conditions
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
    after = await walk.rows()
    _check_history(walk, before, after)
    await walk.settle()
    again = await walk.rows()
    assert again == after
    return again


def _check_history(walk: Walk, before: Rows, after: Rows) -> None:
    """Snapshots are only added, each told once, and of each section's bytes there is one copy."""
    assert set(before["inventory_snapshots"]) <= set(after["inventory_snapshots"])
    assert set(before["inventory_sections"]) <= set(after["inventory_sections"])
    assert len(after["inventory_snapshots"]) == sum(node.snapshots for node in walk.fleet.nodes.values())
    assert len(after["inventory_sections"]) == len(walk.sent)
    told = sum("node.inventory.changed" in event for event in after["outbox"])
    assert told == len(after["inventory_snapshots"])


def _row(device: dict[str, Any]) -> Row:
    parent = device["parent"]["id"] if device["parent"] else None
    kind = device["class"].lower().replace("_", ".")
    assert device["bookable"] is False or kind in ATOMS
    flags = (device["bookable"], device["healthy"], device["missing"], device["partitionPending"])
    return Row(kind, parent, *flags)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_fleet_is_what_a_plain_model_says_after_every_step(database: Database, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    async with running_server(database, reconcile=False) as server:
        walk = await begin(chance, server, database)
        rows = await _check(walk, await walk.rows())
        for step in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
            walk.done.append(step.__name__)
            try:
                await step(walk)
                await walk.settle()
                rows = await _check(walk, rows)
            except AssertionError as error:
                error.add_note(f"after {', '.join(walk.done)}")
                raise
