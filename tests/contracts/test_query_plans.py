"""Query plans at 10,000 nodes: what a page costs follows from its rows, not from the fleet."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from db.database import Database, Reader
from tests.support.server import RunningServer, running_server

NODES = 10_000
PREPARED = """
select custom_plans, generic_plans from pg_prepared_statements
where statement like '%labels @> any(%' and statement not like '%pg_prepared_statements%'
"""
ROWS = (
    "nodes { id devices(first: 8) { nodes { id health { cause } } } conditions { type } latestSnapshot { id } "
    "labels { key } }"
)


async def _fill(owner: Database, tenant_id: str) -> None:
    statements = (
        """
        insert into nodes (id, tenant_id, identity_key, hostname, provision_state, inventory_labels)
        select 'node_' || lpad(i::text, 26, '0'), $1, 'key-' || i, 'host-' || i, 'ready',
            jsonb_build_object('gpu.model', (array['H100', 'A100', 'L40S'])[1 + i % 3], 'rack', 'r' || i % 500)
        from generate_series(1, $2::int) i
        """,
        "insert into node_liveness (node_id, tenant_id, last_seen_at) select id, $1, now() from nodes limit $2",
        """
        insert into node_conditions (node_id, type, tenant_id, status, since)
        select id, t, $1, 'true', now() from nodes, unnest(array['A', 'B']) t limit 2 * $2
        """,
        """
        insert into devices (id, tenant_id, node_id, device_class)
        select n.id || '-' || k, $1, n.id, 'gpu' from nodes n, generate_series(1, 4) k limit 4 * $2
        """,
        """
        insert into device_health (device_id, source, cause, tenant_id, node_id, reason, since)
        select id, 'inventory', 'c', $1, node_id, 'r', now() from devices where id like '%-1' limit $2
        """,
        """
        insert into inventory_snapshots (id, tenant_id, node_id, digest, sections, received_at)
        select 'inv_' || k || id, $1, id, 'd', '{}', now() from nodes, generate_series(1, 2) k limit 2 * $2
        """,
    )
    async with owner.transaction() as tx:
        for statement in statements:
            await tx.execute(statement, tenant_id, NODES)
    async with owner.session() as tx:
        await tx.execute("analyze")


@pytest.fixture
async def fleet(database: Database, owner: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as server:
        await _fill(owner, server.operator.tenant_id)
        yield server


async def _plans(server: RunningServer, query: str, **variables: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return every node of the plans of an operation's statements, as they ran."""
    statements: list[tuple[str, tuple[Any, ...]]] = []
    whole = Reader.texts

    async def noted(self: Reader, compiled: Any, values: Any, **more: Any) -> Any:  # noqa: ANN401 - as Reader has it
        statements.append((compiled.text, compiled.arguments(values)))
        return await whole(self, compiled, values, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "texts", noted)
        await server.operator.data(query, **variables)
    found: list[dict[str, Any]] = []
    async with server.services.database.transaction() as tx:
        await tx.execute("set local plan_cache_mode to force_custom_plan")
        for text, arguments in statements:
            explained = await tx.value(f"explain (analyze, format json) {text}", *arguments)
            (plan,) = json.loads(explained) if isinstance(explained, str) else explained
            found += _nodes(plan["Plan"])
    assert found
    return found


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _indexes(plans: list[dict[str, Any]]) -> set[str]:
    return {plan["Index Name"] for plan in plans if "Index Name" in plan}


def _scanned(plans: list[dict[str, Any]]) -> set[str]:
    """Return the tables that were read as a whole."""
    return {plan["Relation Name"] for plan in plans if plan["Node Type"] == "Seq Scan"}


def _rows_read(plans: list[dict[str, Any]], table: str) -> int:
    return sum(
        round(plan["Actual Rows"] * plan["Actual Loops"]) + plan.get("Rows Removed by Filter", 0)
        for plan in plans
        if plan.get("Relation Name") == table
    )


async def test_a_page_and_all_that_belongs_to_it_is_read_by_indexes_wherever_it_lies(fleet: RunningServer) -> None:
    query = f"query ($a: Cursor) {{ nodes(first: 50, after: $a) {{ {ROWS} pageInfo {{ endCursor hasNextPage }} }} }}"
    far = (
        await fleet.operator.data(
            "query ($id: ID!) { nodes(filter: {id: [$id]}) { pageInfo { endCursor } } }", id=f"node_{9000:026}"
        )
    )["nodes"]["pageInfo"]["endCursor"]
    for after in (None, far):
        plans = await _plans(fleet, query, a=after)
        assert _scanned(plans) == set()
        assert _rows_read(plans, "nodes") <= 2 * 51
        assert _rows_read(plans, "devices") <= 51 * 4
        assert {"devices_node_idx", "node_conditions_pkey", "inventory_snapshots_history_idx"} <= _indexes(plans)
        assert "device_health_pkey" in _indexes(plans)


async def test_a_page_by_host_name_is_read_in_its_indexs_order(fleet: RunningServer) -> None:
    plans = await _plans(fleet, "{ nodes(first: 50, orderBy: HOSTNAME) { edges { cursor } pageInfo { hasNextPage } } }")
    assert "nodes_hostname_idx" in _indexes(plans)
    assert _rows_read(plans, "nodes") <= 51


async def test_a_part_of_a_name_is_found_by_its_index(fleet: RunningServer) -> None:
    plans = await _plans(fleet, '{ nodes(first: 50, filter: {text: "host-9876"}) { nodes { id } totalCount } }')
    assert "nodes_text_idx" in _indexes(plans)
    assert _scanned(plans) == set()


async def test_labels_are_found_by_their_index(fleet: RunningServer) -> None:
    plans = await _plans(fleet, '{ nodes(filter: {selector: "rack=r7,gpu.model in (H100,A100)"}) { totalCount } }')
    assert "nodes_labels_idx" in _indexes(plans)
    assert _scanned(plans) == set()


async def test_one_node_is_read_by_its_key(fleet: RunningServer) -> None:
    plans = await _plans(
        fleet, f'{{ computeNode(id: "node_{77:026}") {{ id state devices(first: 8) {{ nodes {{ id }} }} }} }}'
    )
    assert _scanned(plans) == set()
    assert _rows_read(plans, "nodes") == 1
    assert _rows_read(plans, "devices") == 4


async def test_a_selector_is_planned_for_its_labels_however_often_it_runs(fleet: RunningServer) -> None:
    """PostgreSQL would settle for one plan after five executions, and read the fleet to find a rare label."""
    query = "query ($s: String!) { nodes(first: 5, filter: {selector: $s}) { nodes { id } } }"
    for rack in range(10):
        assert (await fleet.operator.data(query, s=f"rack=r{rack}"))["nodes"]["nodes"]
    async with AsyncExitStack() as stack:
        # The pool's connections, each with the statements that it keeps.
        sessions = [await stack.enter_async_context(fleet.services.database.session()) for _ in range(4)]
        kept = [row for session in sessions for row in await session.fetch(PREPARED)]
    assert sum(row.custom_plans for row in kept) == 10
    assert sum(row.generic_plans for row in kept) == 0
