"""What changed in a fleet between two times, and that it costs what changed, not what is there."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from db.database import Database, Reader
from tests.support.server import RunningServer, report, running_server

QUERY = """
query ($from: DateTime!, $to: DateTime!, $first: Int, $after: Cursor, $filter: NodeFilter) {
  fleetDiff(from: $from, to: $to, first: $first, after: $after, filter: $filter) {
    totalCount
    pageInfo { hasNextPage endCursor }
    nodes { node { hostname } from { digest } to { digest } changes { type before after } }
  }
}
"""


def _now() -> str:
    return datetime.now(UTC).isoformat()


async def _time_passes() -> str:
    await asyncio.sleep(0.02)
    now = _now()
    await asyncio.sleep(0.02)
    return now


async def test_a_fleet_is_compared_with_itself_at_another_time(server: RunningServer) -> None:
    ids = [await report(server.agent, f"host-{number}", {"os": {"kernel": "6.1.0"}}) for number in range(4)]
    earlier = await _time_passes()
    for number in (1, 3):
        await report(server.agent, f"host-{number}", {"os": {"kernel": f"6.{number}.9"}})
    await report(server.agent, "new", {"os": {"kernel": "6.2.0"}})
    later = await _time_passes()
    await report(server.agent, "host-0", {"os": {"kernel": "7.0.0"}})
    found = (await server.operator.data(QUERY, **{"from": earlier, "to": later}))["fleetDiff"]
    assert found["totalCount"] == 3
    assert [each["node"]["hostname"] for each in found["nodes"]] == ["host-1", "host-3", "new"]
    assert [[change["after"] for change in each["changes"]] for each in found["nodes"]] == [
        [{"kernel": "6.1.9"}],
        [{"kernel": "6.3.9"}],
        [],
    ]
    assert found["nodes"][2]["from"] is None
    page = (await server.operator.data(QUERY, **{"from": earlier, "to": later}, first=2))["fleetDiff"]
    assert page["pageInfo"]["hasNextPage"]
    rest = (
        await server.operator.data(
            QUERY, **{"from": earlier, "to": later}, first=2, after=page["pageInfo"]["endCursor"]
        )
    )["fleetDiff"]
    assert [each["node"]["hostname"] for each in page["nodes"] + rest["nodes"]] == ["host-1", "host-3", "new"]
    only = (await server.operator.data(QUERY, **{"from": earlier, "to": later}, filter={"id": [ids[3]]}))["fleetDiff"]
    assert [each["node"]["hostname"] for each in only["nodes"]] == ["host-3"]
    assert only["totalCount"] == 1
    assert (await server.stranger.data(QUERY, **{"from": earlier, "to": later}))["fleetDiff"]["nodes"] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, "is before from"),
        ({"from": "2026-01-01T00:00:00", "to": "2026-02-01T00:00:00Z"}, "from: without a zone"),
        ({"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z", "first": 500}, "at most 200"),
    ],
)
async def test_a_wrong_interval_is_refused(server: RunningServer, given: dict[str, Any], said: str) -> None:
    (error,) = (await server.operator.send(QUERY, **given))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert said in error["message"]


async def test_what_is_read_follows_from_the_changes_and_not_from_the_fleet(
    database: Database, owner: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_server(database, reconcile=False) as server:
        tenant = server.operator.tenant_id
        old, new = datetime.now(UTC) - timedelta(days=30), datetime.now(UTC) - timedelta(minutes=5)
        async with database.transaction() as tx:
            await tx.execute(
                "insert into nodes (id, tenant_id, identity_key) "
                "select 'node_' || lpad(i::text, 26, '0'), $1, i from generate_series(1, 10000) i",
                tenant,
            )
            insert = (
                "insert into inventory_snapshots (id, tenant_id, node_id, digest, sections, received_at) "
                "select $3::text || id, $1, id, 'd', '{}', $2 from nodes where id like $4"
            )
            await tx.execute(insert, tenant, old, "inv_a", "%")
            await tx.execute(insert, tenant, new, "inv_b", "%77")
        async with owner.session() as session:
            await session.execute("analyze")
        statements: list[tuple[str, tuple[Any, ...]]] = []
        whole = Reader.fetch

        async def noted(self: Reader, statement: Any, *args: Any) -> Any:  # noqa: ANN401 - as Reader has it
            statements.append((statement, args))
            return await whole(self, statement, *args)

        monkeypatch.setattr(Reader, "fetch", noted)
        hour = {"from": (new - timedelta(minutes=5)).isoformat(), "to": _now()}
        found = (await server.operator.data(QUERY, **hour, first=50))["fleetDiff"]
        assert (len(found["nodes"]), found["totalCount"]) == (50, 100)
        read = 0
        async with database.session() as session:
            for text, args in statements:
                if "inventory_snapshots" in text:
                    explained = await session.value(f"explain (analyze, format json) {text}", *args)
                    (plan,) = json.loads(explained) if isinstance(explained, str) else explained
                    read += _rows(plan["Plan"])
    assert 0 < read < 2000


def _rows(plan: dict[str, Any]) -> int:
    own = 0
    if plan.get("Relation Name") in {"inventory_snapshots", "nodes"}:
        own = round(plan["Actual Rows"] * plan["Actual Loops"]) + plan.get("Rows Removed by Filter", 0)
    return own + sum(_rows(below) for below in plan.get("Plans", ()))
