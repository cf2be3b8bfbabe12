"""The live view of nodes: what is told of it makes what a query shows."""

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from db.database import Database
from reconcilers.leases import leases
from tests.support.events import forget_all
from tests.support.node_view import KeptView
from tests.support.server import RunningServer, hello, listening_server
from tests.support.silence import silence
from tests.support.socket import Socket, open_socket
from tests.support.waiting import SECONDS_MAX, until
from tests.support.walk.steps import WEIGHTS
from tests.support.walk.walker import begin

FIELDS = """
  id hostname agentVersion provisionState trust cordoned generation state schedulable unschedulableReasons
  noScheduleReasons units { kind } site { name } pool { name sharing } labels { key value source }
  conditions { type status } inventoryStatus { state reportedDigest appliedDigest missingSections error }
  devices(first: 100) { nodes { id bookable healthy missing partitionPending } } allocations { id }
  latestSnapshot { digest }
"""
CHANGES = f"""
subscription ($filter: NodeFilter, $after: Cursor) {{
  nodeChanges(filter: $filter, after: $after) {{ kind nodeId cursor node {{ {FIELDS} }} }}
}}
"""
NODES = f"query ($filter: NodeFilter) {{ nodes(filter: $filter, first: 1000) {{ nodes {{ {FIELDS} }} }} }}"
LABEL = 'mutation ($id: ID!, $to: String!) { labelNode(id: $id, set: [{key: "zone", value: $to}]) { id } }'
CORDON = "mutation ($id: ID!) { cordonNode(id: $id) { id } }"
CURSOR = "{ feedCursor }"
Served = tuple[RunningServer, str]
STEPS = 24
FILTERS: tuple[dict[str, str], ...] = (
    {"selector": "zone in (o0,o1,a0,a1)"},
    {"text": "n", "selector": "!bc.dev/driver.vm"},
    {},
)


async def _fresh(server: RunningServer, given: dict[str, str]) -> dict[str, Any]:
    found = (await server.operator.data(NODES, filter=given))["nodes"]["nodes"]
    return {node["id"]: node for node in found}


def _differing(kept: dict[str, Any], fresh: dict[str, Any]) -> dict[str, Any]:
    """Return what is not the same: fields of nodes as they are kept and as they are, and nodes that one lacks."""
    return {
        node_id: {name: (was[name], now[name]) for name in now if was[name] != now[name]} if was and now else (was, now)
        for node_id in kept | fresh
        if (was := kept.get(node_id)) != (now := fresh.get(node_id))
    }


async def _agrees(view: KeptView, socket: Socket, server: RunningServer, given: dict[str, str]) -> None:
    """Follow until the view is what a query shows."""
    fresh = await _fresh(server, given)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while view.nodes != fresh:
                await view.follow(socket)
                fresh = await _fresh(server, given)
    except TimeoutError:
        raise AssertionError(_differing(view.nodes, fresh)) from None


@pytest.mark.parametrize(("seed", "given"), list(enumerate(FILTERS)))
async def test_a_view_with_its_changes_is_what_a_query_shows_over_reconnects_at_any_moment(
    database: Database, seed: int, given: dict[str, str]
) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    view = KeptView()
    async with listening_server(database, reconcile=False) as (server, address), AsyncExitStack() as stack:
        walk = await begin(chance, server, database)
        socket: Socket | None = None
        for _ in range(STEPS):
            if socket is None and chance.random() < 0.5:
                socket = await stack.enter_async_context(open_socket(address, server.operator.token))
                await socket.subscribe(CHANGES, filter=given, after=view.cursor)
                await view.sync(socket)
            (step,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
            walk.done.append(step.__name__)
            await step(walk)
            await walk.settle()
            if socket is not None and chance.random() < 0.3:
                await _agrees(view, socket, server, given)
            if socket is not None and chance.random() < 0.3:
                await stack.aclose()
                socket = None
        if socket is None:
            socket = await stack.enter_async_context(open_socket(address, server.operator.token))
            await socket.subscribe(CHANGES, filter=given, after=view.cursor)
            await view.sync(socket)
        await _agrees(view, socket, server, given)


async def test_a_node_enters_changes_and_leaves_with_a_label(served: Served) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    view = KeptView()
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGES, filter={"selector": "zone=a"})
        await view.sync(socket)
        assert view.nodes == {}
        await server.operator.data(LABEL, id=node_id, to="a")
        await view.follow(socket)
        await server.operator.data(CORDON, id=node_id)
        await view.follow(socket)
        assert view.nodes[node_id]["cordoned"]
        await server.operator.data(LABEL, id=node_id, to="b")
        await view.follow(socket)
    assert view.kinds == ["SYNCED", "ENTERED", "CHANGED", "LEFT"]


async def test_who_resumes_is_told_what_left_meanwhile(served: Served) -> None:
    server, address = served
    left, stays = [await hello(server.agent, name) for name in ("n1", "n2")]
    for node_id in (left, stays):
        await server.operator.data(LABEL, id=node_id, to="a")
    view = KeptView()
    for to in ("a", "b"):
        await server.operator.data(LABEL, id=left, to=to)
        async with open_socket(address, server.operator.token) as socket:
            await socket.subscribe(CHANGES, filter={"selector": "zone=a"}, after=view.cursor)
            await view.sync(socket)
    assert set(view.nodes) == {stays}
    assert view.kinds == ["ENTERED", "ENTERED", "SYNCED", "LEFT", "SYNCED"]


async def test_another_tenant_has_a_view_of_its_own(served: Served) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    theirs = KeptView()
    async with (
        open_socket(address, server.stranger.token) as stranger,
        open_socket(address, server.operator.token) as socket,
    ):
        await stranger.subscribe(CHANGES)
        await theirs.sync(stranger)
        ours = KeptView()
        await socket.subscribe(CHANGES)
        await ours.sync(socket)
        await server.operator.data(CORDON, id=node_id)
        await ours.follow(socket)
        own_id = await hello(server.stranger, "n1")
        await theirs.follow(stranger)
    assert set(ours.nodes) == {node_id}
    assert set(theirs.nodes) == {own_id}


async def test_a_lease_that_ends_by_time_alone_is_told(database: Database, served: Served) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    await leases(database).activate()
    view = KeptView()
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGES, filter={"state": ["READY"]})
        await view.sync(socket)
        assert set(view.nodes) == {node_id}
        await silence(database, 60, node_id)
        await leases(database).activate()
        while view.nodes:
            await view.follow(socket)


async def test_a_node_that_was_seen_away_between_two_looks_at_leases_comes_back(
    database: Database, served: Served
) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    await leases(database).activate()
    view = KeptView()
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGES, filter={"state": ["READY"]})
        await view.sync(socket)
        await silence(database, 60, node_id)
        await server.operator.data(LABEL, id=node_id, to="a")
        while view.nodes:
            await view.follow(socket)
        await hello(server.agent, "n1")
        await leases(database).activate()
        while not view.nodes:
            await view.follow(socket)


async def test_a_cursor_that_retention_overtook_is_refused(database: Database, served: Served) -> None:
    server, address = served
    node_id = await hello(server.agent, "n1")
    cursor, first = (await server.operator.data(CURSOR))["feedCursor"], server.services.feed.head
    for to in ("a", "b"):
        await server.operator.data(LABEL, id=node_id, to=to)
    await until(lambda: server.services.feed.head > first)
    await forget_all(database)
    async with open_socket(address, server.operator.token) as socket:
        await socket.subscribe(CHANGES, after=cursor)
        assert (await socket.error())["extensions"]["code"] == "CURSOR_EXPIRED"
