"""Each kind of bad input has its own clear INVALID_INPUT, and costs nobody else anything."""

import asyncio
import base64
import hashlib
from typing import Any

import pytest

from domain.sections import SECTION_BYTES_MAX
from tests.support.server import INGEST, RECORD, RunningServer, applied, hash_of, hello, section


def raw(name: str, content: bytes, *, sha256: str | None = None) -> dict[str, str]:
    """Return a section with exactly these bytes."""
    return {
        "name": name,
        "sha256": sha256 or hashlib.sha256(content).hexdigest(),
        "content": base64.b64encode(content).decode(),
    }


TWICE = {"enumeration": "complete", "gpus": [{"uuid": "GPU-1"}, {"uuid": "GPU-1"}]}
BAD: dict[str, tuple[list[dict[str, str]], str | None, str | None, str]] = {
    "wrong hash": ([raw("os", b"{}", sha256="0" * 64)], "os", "sha256", "hash to"),
    "no hash": ([raw("os", b"{}", sha256="abc")], "os", "sha256", "64 hexadecimal digits"),
    "not base64": ([{**raw("os", b"{}"), "content": "%%%"}], "os", "content", "not base64"),
    "not JSON": ([raw("os", b"{")], "os", None, "not a JSON document"),
    "not UTF-8": ([raw("os", b'{"kernel": "\xff"}')], "os", None, "not a readable JSON"),
    "not UTF-8 where no field reads": ([raw("os", b'{"ofANewerAgent": "\xff"}')], "os", None, "not a readable JSON"),
    "too many items": ([section("gpus", {"gpus": [{}] * 1025})], "gpus", "gpus", "length <= 1024"),
    "not an object": ([raw("os", b"[]")], "os", None, "Expected `object`"),
    "wrong type": ([raw("gpus", b'{"enumeration":"complete","gpus":[{"index":"x"}]}')], "gpus", "gpus.0.index", "`int"),
    "negative": ([raw("memory", b'{"totalBytes": -1}')], "memory", "totalBytes", ">= 0"),
    "beyond 64 bits": ([raw("memory", b'{"totalBytes": 9223372036854775808}')], "memory", "totalBytes", "<="),
    "unknown name": ([raw("fans", b"{}")], "fans", None, "unknown section name"),
    "one name twice": ([raw("os", b"{}"), raw("os", b'{"kernel":"6"}')], "os", None, "named twice"),
    "one id twice": ([section("gpus", TWICE)], "gpus", "gpus.1", "already that of gpus.0"),
    "too large": ([raw("os", b'{"kernel":"' + b"x" * SECTION_BYTES_MAX + b'"}')], "os", None, "bytes"),
    "NUL": ([raw("os", b'{"kernel":"6\\u0000"}')], "os", None, "U+0000"),
    "more than there are": ([raw("os", b"{}")] * 9, None, None, "at most 8"),
    "nothing": ([], None, None, "at least one section"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_bad_input_is_refused_where_it_is_and_its_neighbour_is_stored(server: RunningServer, kind: str) -> None:
    sections, name, place, said = BAD[kind]
    bad, good = [await hello(server.agent, identity) for identity in ("bad", "good")]
    entries = [{"nodeId": bad, "sections": sections}, {"nodeId": good, "sections": [section("os", {"kernel": "6"})]}]
    refused, taken = (await server.agent.data(INGEST, entries=entries))["ingestSections"]
    assert taken == {"nodeId": good, "stored": ["os"], "error": None}
    assert refused["stored"] == []
    assert refused["error"]["code"] == "INVALID_INPUT"
    assert refused["error"]["section"] == name
    assert said in refused["error"]["message"]
    if place is not None:
        assert refused["error"]["place"] == place
    async with server.services.database.transaction() as tx:
        assert await tx.value("select count(*) from inventory_sections where node_id = $1", bad) == 0


async def test_a_node_twice_in_a_batch_is_refused_the_second_time(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    entry = {"nodeId": node_id, "sections": [section("os", {"kernel": "6"})]}
    slots = (await server.agent.data(INGEST, entries=[entry, entry]))["ingestSections"]
    assert [slot["error"] is None for slot in slots] == [True, False]
    assert "entry 0" in slots[1]["error"]["message"]


@pytest.mark.parametrize(("mutation", "name", "most"), [(INGEST, "sections", 200), (RECORD, "hashes", 1000)])
async def test_a_batch_beyond_its_bound_is_refused_whole(
    server: RunningServer, mutation: str, name: str, most: int
) -> None:
    entries: list[dict[str, Any]] = [{"nodeId": f"n{number}", name: []} for number in range(most + 1)]
    answer = await server.agent.send(mutation, entries=entries)
    assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"
    assert str(most) in answer["errors"][0]["message"]


async def test_bytes_are_kept_as_received_and_unknown_fields_are_ignored(server: RunningServer) -> None:
    content = b'{ "kernel" : "6.1.0",\n "ofANewerAgent": [1, {"x": 2}] }'
    node_id = await hello(server.agent, "n1")
    await server.agent.data(INGEST, entries=[{"nodeId": node_id, "sections": [raw("os", content)]}])
    async with server.services.database.transaction() as tx:
        row = await tx.first("select content, document from inventory_sections where node_id = $1", node_id)
    assert row is not None
    assert (row.content, row.document) == (content, {"kernel": "6.1.0"})


async def test_amounts_of_64_bits_are_strings_in_documents_and_in_the_graph(server: RunningServer) -> None:
    amount = 2**62 + 1
    node_id = await hello(server.agent, "n1")
    entry = {"nodeId": node_id, "sections": [section("memory", {"totalBytes": amount})]}
    await server.agent.data(INGEST, entries=[entry])
    async with server.services.database.transaction() as tx:
        document = await tx.value("select document from inventory_sections where node_id = $1", node_id)
    assert document == {"totalBytes": str(amount)}


async def test_an_unchanged_heartbeat_writes_no_inventory_row(server: RunningServer) -> None:
    given = section("os", {"kernel": "6"})
    node_id = await hello(server.agent, "n1")
    await server.agent.data(INGEST, entries=[{"nodeId": node_id, "sections": [given]}])
    report = {"nodeId": node_id, "hashes": [hash_of(given)]}
    await server.agent.data(RECORD, entries=[report])
    await applied(server.operator, node_id)
    versions = "select i.xmin::text as inventory, l.xmin::text as liveness from node_inventory i, node_liveness l"
    async with server.services.database.transaction() as tx:
        before = await tx.first(versions)
    assert before is not None
    slots = (await server.agent.data(RECORD, entries=[report]))["recordInventoryHashes"]
    assert slots == [{"nodeId": node_id, "requestSections": [], "error": None}]
    async with server.services.database.transaction() as tx:
        after = await tx.first(versions)
    assert after is not None
    assert after.inventory == before.inventory
    assert after.liveness != before.liveness


async def test_a_report_of_other_hashes_waits_for_their_bytes(server: RunningServer) -> None:
    node_id = await hello(server.agent, "n1")
    wanted = section("os", {"kernel": "6"})
    record = {"nodeId": node_id, "hashes": [hash_of(wanted), {"name": "cpu", "sha256": "0" * 64}]}
    slots = (await server.agent.data(RECORD, entries=[record]))["recordInventoryHashes"]
    assert slots[0]["requestSections"] == ["cpu", "os"]
    await server.agent.data(INGEST, entries=[{"nodeId": node_id, "sections": [wanted]}])
    slots = (await server.agent.data(RECORD, entries=[record]))["recordInventoryHashes"]
    assert slots[0]["requestSections"] == ["cpu"]


async def test_batches_that_name_the_same_nodes_in_any_order_do_not_deadlock(server: RunningServer) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(30)]
    entries = [{"nodeId": node_id, "hashes": [{"name": "os", "sha256": "1" * 64}]} for node_id in nodes]
    answers = await asyncio.gather(
        *(server.agent.data(RECORD, entries=entries[:: 1 if turn % 2 else -1]) for turn in range(12))
    )
    assert all(slot["error"] is None for answer in answers for slot in answer["recordInventoryHashes"])


async def test_reports_and_sections_of_the_same_nodes_do_not_deadlock(server: RunningServer) -> None:
    nodes = [await hello(server.agent, f"n{number}") for number in range(20)]

    def entries(turn: int, name: str, given: list[dict[str, str]]) -> list[dict[str, Any]]:
        order = nodes[:: 1 if turn % 2 else -1]
        return [{"nodeId": node_id, name: given} for node_id in order]

    for turn in range(6):
        sent = section("os", {"kernel": f"6.{turn}"})
        other = [{"name": "os", "sha256": f"{turn}" * 64}]
        answers = await asyncio.gather(
            *(server.agent.send(RECORD, entries=entries(number, "hashes", other)) for number in range(4)),
            *(server.agent.send(INGEST, entries=entries(number, "sections", [sent])) for number in range(4)),
        )
        assert all("errors" not in answer for answer in answers)


async def test_a_node_id_that_is_none_costs_its_own_slot_only(server: RunningServer) -> None:
    good = await hello(server.agent, "good")
    entries = [{"nodeId": odd, "sections": [section("os", {})]} for odd in ("a\0", "", "x" * 9999, good)]
    slots = (await server.agent.data(INGEST, entries=entries))["ingestSections"]
    assert [slot["error"] and slot["error"]["code"] for slot in slots] == ["NOT_FOUND"] * 3 + [None]


@pytest.mark.parametrize(
    ("field", "text"), [("identityKey", " "), ("hostname", ""), ("displayName", "x" * 256), ("bootId", "a\0b")]
)
async def test_a_hello_with_a_bad_text_is_refused_by_its_name(server: RunningServer, field: str, text: str) -> None:
    said = {"identityKey": "n1", field: text}
    answer = await server.agent.send("mutation ($i: HelloInput!) { hello(input: $i) { sessionId } }", i=said)
    assert answer["errors"][0]["extensions"]["code"] == "INVALID_INPUT"
    assert field in answer["errors"][0]["message"]


async def test_hello_counts_as_a_report_of_its_hashes(server: RunningServer) -> None:
    given = section("os", {"kernel": "6"})
    query = "mutation ($i: HelloInput!) { hello(input: $i) { node { id state hostname } requestSections } }"
    first = (await server.agent.data(query, i={"identityKey": "n1", "hashes": [hash_of(given)]}))["hello"]
    assert first["requestSections"] == ["os"]
    await server.agent.data(INGEST, entries=[{"nodeId": first["node"]["id"], "sections": [given]}])
    again = {"identityKey": "n1", "hostname": "renamed", "hashes": [hash_of(given)]}
    second = (await server.agent.data(query, i=again))["hello"]
    assert second["requestSections"] == []
    assert second["node"] == {"id": first["node"]["id"], "state": "READY", "hostname": "renamed"}
