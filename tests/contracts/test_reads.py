"""Reading: pages, filters, relations, and that a page costs a constant number of statements."""

import asyncio
import gc
from typing import Any

import pytest

from db.database import Database, Reader
from db.identifiers import new_id
from domain.cursor import FeedCursor, encode_feed
from tests.support.events import forget_all
from tests.support.server import RunningServer, hello, ingest, report, running_server
from tests.support.waiting import until

PAGE = """
query ($first: Int!, $after: Cursor) {
  nodes(first: $first, after: $after) { nodes { hostname } pageInfo { hasNextPage endCursor } totalCount }
}
"""
DEEP = """
query ($first: Int!) {
  nodes(first: $first) {
    totalCount
    nodes {
      id hostname state connectivity
      site { name } pool { name site { name } }
      devices(first: 10) { totalCount nodes { id node { hostname } parent { id } notKnown { fact } } }
      conditions { type status }
      inventoryStatus { state }
      latestSnapshot {
        digest
        sections { os { kernel notKnown { fact } } gpus { gpus { uuid } } }
        diff { changes { type } }
      }
      snapshots(first: 3) { nodes { id } totalCount }
      snapshotAt(time: "2100-01-01T00:00:00Z") { id }
    }
  }
}
"""


def gpu_host(number: int) -> dict[str, Any]:
    gpus = [{"uuid": f"GPU-{number:08x}-{index:04x}", "name": "NVIDIA L40S"} for index in range(2)]
    return {"os": {"kernel": "6.1.0"}, "gpus": {"enumeration": "complete", "gpus": gpus}}


async def fleet(server: RunningServer, count: int) -> list[str]:
    return [await report(server.agent, f"host-{number:02}", gpu_host(number)) for number in range(count)]


async def test_pages_by_cursor_cover_the_list_once(server: RunningServer) -> None:
    for number in range(7):
        await hello(server.agent, f"host-{number}")
    names: list[str] = []
    after = None
    while True:
        page = (await server.operator.data(PAGE, first=3, after=after))["nodes"]
        names += [node["hostname"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert names == [f"host-{number}" for number in range(7)]
    assert page["totalCount"] == 7


async def test_a_page_by_host_name_goes_on_where_names_are_equal_or_absent(server: RunningServer) -> None:
    for identity, name in (("a", "same"), ("b", "same"), ("c", None), ("d", "first")):
        await hello(server.agent, identity, hostname=name)
    query = """
    query ($after: Cursor) {
      nodes(orderBy: HOSTNAME, first: 1, after: $after) { nodes { hostname } pageInfo { endCursor } }
    }
    """
    names, after = [], None
    for _ in range(4):
        page = (await server.operator.data(query, after=after))["nodes"]
        names += [node["hostname"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
    assert names == [None, "first", "same", "same"]


@pytest.mark.parametrize("first", [-1, 1001])
async def test_a_page_size_beyond_its_bounds_is_refused(server: RunningServer, first: int) -> None:
    answer = await server.operator.send(PAGE, first=first)
    assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"
    assert "first" in answer["errors"][0]["message"]


async def test_a_cursor_of_another_list_is_refused(server: RunningServer) -> None:
    await report(server.agent, "n1", gpu_host(1))
    cursor = (await server.operator.data("{ devices { pageInfo { endCursor } } }"))["devices"]["pageInfo"]["endCursor"]
    answer = await server.operator.send(PAGE, first=1, after=cursor)
    assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"


async def test_a_page_costs_the_same_number_of_statements_however_many_rows_it_has(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet(server, 12)
    counts: list[int] = []
    close = Reader.close

    async def counted(self: Reader) -> None:
        if self.statements:
            counts.append(self.statements)
        await close(self)

    monkeypatch.setattr(Reader, "close", counted)
    for first in (2, 12):
        page = (await server.operator.data(DEEP, first=first))["nodes"]
        assert len(page["nodes"]) == first
        assert page["nodes"][0]["devices"]["totalCount"] == 2
    assert counts[0] == counts[1]


async def test_filters_by_tenant_site_pool_state_and_text(database: Database, server: RunningServer) -> None:
    ids = [await hello(server.agent, f"host-{number}", displayName=f"Rack_{number}") for number in range(4)]
    tenant = server.operator.tenant_id
    site, pool = new_id("site"), new_id("pool")
    async with database.transaction() as tx:
        await tx.execute("insert into sites (id, tenant_id, name, iam_region) values ($1, $2, 'x', 'eu')", site, tenant)
        await tx.execute(
            "insert into pools (id, tenant_id, site_id, name) values ($1, $2, $3, 'p')", pool, tenant, site
        )
        await tx.execute("update nodes set site_id = $1 where id = any ($2)", site, ids[:2])
        await tx.execute("update nodes set pool_id = $1 where id = $2", pool, ids[1])
        await tx.execute("update nodes set cordoned = true where id = $1", ids[2])
        await tx.execute(
            "update node_liveness set last_seen_at = now() - interval '41 seconds' where node_id = $1", ids[3]
        )
    query = "query ($f: NodeFilter) { nodes(filter: $f) { nodes { id } totalCount } }"
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ids),
        ({"tenantId": tenant}, ids),
        ({"tenantId": server.stranger.tenant_id}, []),
        ({"siteId": site}, ids[:2]),
        ({"poolId": [pool]}, ids[1:2]),
        ({"state": "CORDONED"}, ids[2:3]),
        ({"state": ["DISCONNECTED", "CORDONED"]}, ids[2:]),
        ({"state": "READY", "siteId": site}, ids[:2]),
        ({"text": "HOST-1"}, ids[1:2]),
        ({"text": "rack_2"}, ids[2:3]),
        ({"text": "rack%"}, []),
        ({"id": [ids[0], "node_00000000000000000000000000"]}, ids[:1]),
    ]
    for given, wanted in expected:
        found = (await server.operator.data(query, f=given))["nodes"]
        assert [node["id"] for node in found["nodes"]] == wanted, given
        assert found["totalCount"] == len(wanted)
    places = await server.operator.data("{ sites { nodes { name nodes { totalCount nodes { id pool { name } } } } } }")
    assert places["sites"]["nodes"] == [
        {
            "name": "x",
            "nodes": {"totalCount": 2, "nodes": [{"id": ids[0], "pool": None}, {"id": ids[1], "pool": {"name": "p"}}]},
        }
    ]


async def test_history_by_id_by_digest_and_as_of_a_time(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    first = (await server.operator.data("query ($n: ID) { snapshot(nodeId: $n) { id digest receivedAt } }", n=node_id))[
        "snapshot"
    ]
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.2.0"}})
    query = """
    query ($n: ID!, $d: String!, $t: DateTime!, $s: ID!) {
      byDigest: snapshot(nodeId: $n, digest: $d) { id }
      byId: snapshot(id: $s) { id sections { sha256(section: "os") raw(section: "os") os { kernel } cpu { arch } } }
      latest: snapshot(nodeId: $n) { id diff { from { id } changes { type before after } } }
      computeNode(id: $n) { snapshotAt(time: $t) { id } snapshots { nodes { id } } }
      backwards: inventoryDiff(nodeId: $n, from: {time: "2100-01-01T00:00:00Z"}, to: {id: $s}) {
        changes { type before }
      }
    }
    """
    found = await server.operator.data(query, n=node_id, d=first["digest"], t=first["receivedAt"], s=first["id"])
    assert found["byDigest"]["id"] == found["byId"]["id"] == found["computeNode"]["snapshotAt"]["id"] == first["id"]
    assert found["byId"]["sections"]["os"] == {"kernel": "6.1.0"}
    assert found["byId"]["sections"]["cpu"] is None
    assert found["byId"]["sections"]["raw"] == "eyJrZXJuZWwiOiAiNi4xLjAifQ=="
    assert found["latest"]["diff"]["from"]["id"] == first["id"]
    assert [change["type"] for change in found["latest"]["diff"]["changes"]] == ["KERNEL_CHANGED"]
    assert [snapshot["id"] for snapshot in found["computeNode"]["snapshots"]["nodes"]] == [
        found["latest"]["id"],
        first["id"],
    ]
    assert [change["type"] for change in found["backwards"]["changes"]] == ["KERNEL_CHANGED"]


async def test_a_node_without_inventory_answers_not_found(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    for query in ("{ snapshot(nodeId: $n) { id } }", "{ inventoryDiff(nodeId: $n) { changes { type } } }"):
        answer = await server.operator.send(f"query ($n: ID!) {query}", n=node_id)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"]


# graphql-core drops the siblings of a failed field before they started.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_field_that_fails_takes_nothing_from_its_siblings_nor_from_the_pool(database_url: str) -> None:
    fields = " ".join(
        f"a{number}: nodes {{ nodes {{ devices {{ totalCount }} snapshots(first: {-1 if number == 3 else 2}) "
        "{ totalCount nodes { sections { os { kernel } } } } } }"
        for number in range(10)
    )
    database = await Database.connect(database_url, size_max=4)
    async with running_server(database) as server:
        await fleet(server, 3)
        async with asyncio.timeout(20):
            for _ in range(12):
                answer = await server.operator.send(f"{{ {fields} }}")
                assert {error["extensions"]["code"] for error in answer["errors"]} == {"INVALID_INPUT"}
            assert (await server.operator.data("{ nodes { totalCount } }"))["nodes"]["totalCount"] == 3
    await database.close()
    gc.collect()


@pytest.mark.parametrize(
    "query",
    [
        '{ computeNode(id: "\\u0000") { id } }',
        '{ node(id: "a\\u0000") { id } }',
        '{ device(id: "\\u0000") { id } }',
        '{ snapshot(id: "\\u0000") { id } }',
        '{ snapshot(nodeId: "\\u0000", digest: "\\u0000") { id } }',
        '{ nodes(filter: {id: ["\\u0000"]}) { totalCount } }',
        '{ nodes(filter: {text: "\\u0000"}) { totalCount } }',
        "{ nodes(filter: {id: []}) { totalCount } }",
        '{ devices(filter: {nodeId: ["\\u0000"]}) { totalCount } }',
        '{ events(filter: {type: ["\\u0000"]}) { nodes { id } } }',
        '{ nodes { nodes { snapshotAt(time: "0001-01-01T00:00:00+14:00") { id } } } }',
        '{ nodes { nodes { snapshotAt(time: "2026-01-01T00:00:00") { id } } } }',
        'mutation { assignPool(id: "\\u0000", poolId: null) { id } }',
    ],
)
async def test_odd_values_are_refused_and_not_our_bugs(server: RunningServer, query: str) -> None:
    await hello(server.agent, "n1")
    answer = await server.operator.send(query)
    assert {error["extensions"]["code"] for error in answer["errors"]} <= {"INVALID_INPUT", "NOT_FOUND"}


async def test_a_page_size_that_is_null_is_the_usual_one(server: RunningServer) -> None:
    await hello(server.agent, "n1")
    assert (await server.operator.data("{ nodes(first: null) { nodes { hostname } } }"))["nodes"]["nodes"]


async def test_the_log_says_when_it_no_longer_reaches_back_and_passes_over_what_a_query_saw(
    database: Database, server: RunningServer
) -> None:
    await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    await until(lambda: server.services.feed.head == 3)
    first = (await server.operator.data("{ events { nodes { cursor type } } }"))["events"]["nodes"]
    query = "query ($c: Cursor) { events(after: $c) { nodes { type } } }"
    assert (await server.operator.data(query, c=first[-1]["cursor"]))["events"]["nodes"] == []
    await forget_all(database)
    start = encode_feed(FeedCursor(0))
    # A large page is sent as it is read: what refuses it must be known before.
    for large in (query, query.replace("after: $c", "after: $c, first: 1000")):
        answer = await server.operator.send(large, c=start)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["CURSOR_EXPIRED"]
        assert answer["errors"][0]["path"] == ["events"]
    async with database.session() as held:
        await held.execute("select pg_advisory_lock($1)", 0x666C_6565_7402)
        await report(server.agent, "n2", {"os": {"kernel": "6.1.0"}})
        seen = (await server.operator.data("{ feedCursor }"))["feedCursor"]
        await held.execute("select pg_advisory_unlock_all()")
    await report(server.agent, "n3", {"os": {"kernel": "6.1.0"}})
    await until(lambda: server.services.feed.head == 3 * len(first))
    named = "query ($c: Cursor) { events(after: $c) { nodes { node { hostname } } } }"
    told = (await server.operator.data(named, c=seen))["events"]["nodes"]
    assert {event["node"]["hostname"] for event in told} == {"n3"}


async def test_sibling_fields_and_the_feed_cursor_read_one_snapshot(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"os": {"kernel": "6.1.0"}})
    await ingest(server.agent, node_id, {"os": {"kernel": "6.2.0"}})
    query = (
        "{ "
        + " ".join(f"q{number}: nodes {{ nodes {{ latestSnapshot {{ id }} }} }}" for number in range(20))
        + " feedCursor }"
    )
    found = await server.operator.data(query)
    seen = {found[f"q{number}"]["nodes"][0]["latestSnapshot"]["id"] for number in range(20)}
    assert len(seen) == 1
