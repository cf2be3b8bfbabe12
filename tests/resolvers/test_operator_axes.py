"""Cordoning, draining and maintaining nodes, against the server."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from db.database import Database
from reconcilers.draining import draining
from tests.support.atoms import add_atoms
from tests.support.booking import book
from tests.support.rows import Rows, written_rows
from tests.support.server import RunningServer, hello, running_server

FIELDS: Final = "state cordoned draining drained maintenance maintenanceReason maintenanceBy maintenanceSince"
CORDON, UNCORDON, DRAIN = (
    f"mutation ($id: ID!) {{ node: {name}(id: $id) {{ {FIELDS} }} }}"
    for name in ("cordonNode", "uncordonNode", "drainNode")
)
MAINTAIN: Final = f"""
mutation ($id: ID!, $on: Boolean!, $reason: String) {{
  node: setMaintenance(id: $id, on: $on, reason: $reason) {{ {FIELDS} }}
}}
"""
NODE: Final = f"query ($id: ID!) {{ node: computeNode(id: $id) {{ {FIELDS} }} }}"


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _ask(server: RunningServer, operation: str, node_id: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict((await server.operator.data(operation, id=node_id, **given))["node"])


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        found = await written_rows(session)
    del found["node_liveness"]
    return found


async def _told(database: Database) -> list[tuple[str, str | None, str | None]]:
    async with database.session() as session:
        rows = await session.fetch(
            "select type, payload from outbox where type not in ('node.adopted', 'node.changed') order by sequence"
        )
    return [(row.type, row.payload["reason"], row.payload["by"]) for row in rows]


async def _look(database: Database) -> int:
    """Run the reconciler once, and see that a second time writes nothing."""
    reconciler = draining(database)
    done = (await reconciler.activate()).done
    before = await _rows(database)
    assert (await reconciler.activate()).done == 0
    assert await _rows(database) == before
    return done


async def test_a_reregistering_agent_never_undoes_an_operators_word(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    assert (await _ask(server, CORDON, node_id))["state"] == "CORDONED"
    before = await _ask(server, MAINTAIN, node_id, on=True, reason="new fans")
    assert before["maintenanceBy"] == "ours operator"
    assert before["maintenanceSince"] is not None
    assert await hello(server.agent, "n1", bootId="another", agentVersion="2", features=["x"]) == node_id
    assert await _ask(server, NODE, node_id) == before
    assert (before["cordoned"], before["maintenance"], before["maintenanceReason"]) == (True, True, "new fans")
    assert await _told(database) == [
        ("node.cordoned", None, "ours operator"),
        ("node.maintenance.changed", "new fans", "ours operator"),
    ]


async def test_the_same_again_writes_nothing_and_tells_nothing(database: Database, server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    steps: list[tuple[str, dict[str, Any]]] = [
        (CORDON, {}),
        (DRAIN, {}),
        (MAINTAIN, {"on": True, "reason": "x"}),
        (MAINTAIN, {"on": False, "reason": "done"}),
        (UNCORDON, {}),
    ]
    for operation, given in steps:
        first = await _ask(server, operation, node_id, **given)
        before = await _rows(database)
        assert await _ask(server, operation, node_id, **given) == first
        assert await _rows(database) == before
    assert [kind for kind, _, _ in await _told(database)] == [
        "node.cordoned",
        "node.draining",
        "node.maintenance.changed",
        "node.maintenance.changed",
        "node.uncordoned",
    ]
    assert (await _told(database))[3] == ("node.maintenance.changed", "done", "ours operator")
    node = await _ask(server, NODE, node_id)
    assert not any(node[each] for each in ("cordoned", "draining", "drained", "maintenance", "maintenanceReason"))


async def test_a_node_is_drained_when_nothing_is_held_of_it_and_only_then(
    database: Database, server: RunningServer
) -> None:
    node_id, other = [await hello(server.agent, name) for name in ("n1", "n2")]
    await add_atoms(database, node_id, "GPU-a", "GPU-b")
    await book(database, node_id, "GPU-a")
    await book(database, node_id, "GPU-b", after=timedelta(days=1))
    await _ask(server, CORDON, other)
    assert (await _ask(server, DRAIN, node_id))["cordoned"] is True
    assert await _look(database) == 0, "GPU-a is held"
    end = "update allocations set during = tstzrange(lower(during), now()) where during @> now()"
    async with database.transaction() as tx:
        await tx.execute(end)
    assert await _look(database) == 1
    node = await _ask(server, NODE, node_id)
    assert (node["draining"], node["drained"]) == (True, True), "what is reserved for later holds nothing yet"
    async with database.transaction() as tx:
        begins = "update allocations set during = tstzrange(now(), null) where lower(during) > now()"
        await tx.execute(begins)
    assert await _look(database) == 1
    assert (await _ask(server, NODE, node_id))["drained"] is False
    async with database.transaction() as tx:
        await tx.execute(end)
    assert await _look(database) == 1
    await _ask(server, UNCORDON, node_id)
    assert await _look(database) == 0
    assert [(kind, by) for kind, _, by in await _told(database)] == [
        ("node.cordoned", "ours operator"),
        ("node.cordoned", "ours operator"),
        ("node.draining", "ours operator"),
        ("node.drained", None),
        ("node.drained", None),
        ("node.uncordoned", "ours operator"),
    ]


@pytest.mark.parametrize(
    ("operation", "given"), [(CORDON, {}), (UNCORDON, {}), (DRAIN, {}), (MAINTAIN, {"on": True, "reason": "x"})]
)
async def test_others_nodes_are_not_found_and_an_agent_may_not(
    database: Database, server: RunningServer, operation: str, given: dict[str, Any]
) -> None:
    node_id = await hello(server.agent, "n1")
    before = await _rows(database)
    for client, named, code in (
        (server.stranger, node_id, "NOT_FOUND"),
        (server.operator, "nonsense", "NOT_FOUND"),
        (server.agent, node_id, "FORBIDDEN"),
    ):
        (error,) = (await client.send(operation, id=named, **given))["errors"]
        assert error["extensions"]["code"] == code
    assert await _rows(database) == before


async def test_a_reason_that_says_nothing_is_refused(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    (error,) = (await server.operator.send(MAINTAIN, id=node_id, on=True, reason=" "))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert "reason" in error["message"]
