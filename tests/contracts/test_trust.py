"""Trust: what a tenant's machine reports is history, and changes nothing else (rule 9)."""

import asyncio
from typing import Any

from db.database import Database
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.support.server import RunningServer, applied, hello, ingest, report, running_server
from web.app import utc_now

HOST: dict[str, dict[str, Any]] = {
    "os": {"kernel": "6.1.0"},
    "gpus": {
        "enumeration": "complete",
        "driverVersion": "550.90",
        "gpus": [{"uuid": "GPU-00000001-aaaa", "name": "NVIDIA H100 80GB HBM3", "index": 0, "vramMiB": 81559}],
    },
    "images": {"images": [{"reference": "os:1", "digest": "sha256:aa", "sizeBytes": 5}]},
}
THEIRS: dict[str, dict[str, Any]] = {
    "os": {"kernel": "6.9.0"},
    "gpus": {"enumeration": "incomplete", "reason": "made up", "gpus": []},
    "images": {"images": [{"reference": "mine:1"}]},
    "system": {"productUuid": "4c4c4544-0000-1111-2222-333344445555", "systemSerial": "MADE-UP-1"},
}
KEPT = {
    "devices": "select * from devices order by id",
    "conditions": "select * from node_conditions order by node_id, type",
    "images": "select * from node_image_cache order by node_id, reference",
    "nodes": "select id, labels, no_schedule_reasons, hardware_key, hardware_key_trusted, fingerprint from nodes",
}
SET = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { trust } }"
END = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { inventoryStatus { state } } }"


async def _kept(server: RunningServer) -> dict[str, list[tuple[Any, ...]]]:
    async with server.services.database.session() as tx:
        return {name: [tuple(row) for row in await tx.fetch(query)] for name, query in KEPT.items()}


STATUS = """
query ($id: ID!) {
  computeNode(id: $id) {
    inventoryStatus { state appliedDigest }
    latestSnapshot { advisory sections { os { kernel } } }
  }
}
"""


async def _standing(server: RunningServer, node_id: str) -> dict[str, Any]:
    """Wait until nothing of the node waits, and return where it stands."""
    waiting = "select replan or applied is distinct from reported from node_inventory where node_id = $1"
    async with asyncio.timeout(10):
        while True:
            async with server.services.database.session() as tx:
                if not await tx.value(waiting, node_id):
                    return dict((await server.operator.data(STATUS, id=node_id))["computeNode"])
            await asyncio.sleep(0.02)


async def test_a_tenants_report_changes_history_only_until_the_platform_takes_over(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", HOST)
    before = await _kept(server)
    assert before["images"]
    assert (await server.operator.data(SET, id=node_id, trust="TENANT_CONTROLLED"))["setTrust"]["trust"] == (
        "TENANT_CONTROLLED"
    )
    await ingest(server.agent, node_id, THEIRS)
    status = await _standing(server, node_id)
    assert status["inventoryStatus"]["state"] == "ADVISORY"
    assert status["inventoryStatus"]["appliedDigest"].startswith("advisory:")
    assert status["latestSnapshot"] == {"advisory": True, "sections": {"os": {"kernel": "6.9.0"}}}
    assert await _kept(server) == before
    async with server.services.database.session() as tx:
        told = await tx.fetch(
            "select type from (select type, payload from events union all select type, payload from outbox) e "
            "where payload ->> 'advisory' = 'true'"
        )
    assert [row.type for row in told] == ["node.inventory.changed"]
    # The tenant still has control: nothing ends.
    (error,) = (await server.operator.send(END, id=node_id))["errors"]
    assert error["extensions"]["code"] == "CONFLICT"
    # Another pool plans nothing from what the tenant said.
    await server.operator.data(SET, id=node_id, trust="PLATFORM")
    async with server.services.database.transaction() as tx:
        await tx.execute("update node_inventory set replan = true where node_id = $1", node_id)
    server.services.database.inventory_pending.set()
    assert (await _standing(server, node_id))["inventoryStatus"]["state"] == "ADVISORY"
    assert await _kept(server) == before
    assert (await server.operator.data(END, id=node_id))["endAdvisoryInventory"]["inventoryStatus"]["state"] == "NONE"
    await ingest(server.agent, node_id, HOST)
    await applied(server.agent, node_id)
    after = await _kept(server)
    assert after["devices"] == before["devices"]
    assert after["images"] == before["images"]


async def test_a_tenants_images_are_not_looked_for(server: RunningServer) -> None:
    ours = await report(server.agent, "ours", HOST)
    theirs = await hello(server.agent, "theirs")
    await server.operator.data(SET, id=theirs, trust="TENANT_CONTROLLED")
    await ingest(server.agent, theirs, {"images": HOST["images"]})
    assert (await _standing(server, theirs))["inventoryStatus"]["state"] == "ADVISORY"
    async with server.services.database.session() as tx:
        rows = await tx.fetch("select node_id, reference, digest, bytes from node_image_cache")
    assert [tuple(row) for row in rows] == [(ours, "os:1", "sha256:aa", 5)]


async def test_the_image_cache_follows_the_section(server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", HOST)
    more = {"images": [{"reference": "os:1", "digest": "sha256:bb"}, {"reference": "os:2"}]}
    await report(server.agent, "n1", {"images": more})
    async with server.services.database.session() as tx:
        rows = await tx.fetch(
            "select reference, digest, bytes from node_image_cache where node_id = $1 order by 1", node_id
        )
    assert [tuple(row) for row in rows] == [("os:1", "sha256:bb", None), ("os:2", "", None)]


async def test_nodes_are_found_by_their_images_and_weights(server: RunningServer) -> None:
    found: dict[str, dict[str, Any]] = {
        "a": {"images": [{"reference": "os:1", "digest": "sha256:aa"}], "weights": [{"path": "/models/x"}]},
        "b": {"images": [{"reference": "os:2", "digest": "sha256:aa"}], "weights": []},
        "c": {"images": []},
    }
    for name, images in found.items():
        await report(server.agent, name, {"images": images})
    query = "query ($f: NodeFilter) { nodes(filter: $f) { nodes { hostname } } }"
    for given, names in (
        ({"image": ["os:1"]}, ["a"]),
        ({"image": ["sha256:aa"]}, ["a", "b"]),
        ({"image": ["os:1", "os:2"]}, ["a", "b"]),
        ({"image": ["os:3"]}, []),
        ({"weights": "/models/x"}, ["a", "c"]),
        ({"weights": "/models"}, ["c"]),
        ({"weights": "/models/x", "image": ["os:2"]}, []),
    ):
        page = (await server.operator.data(query, f=given))["nodes"]["nodes"]
        assert [node["hostname"] for node in page] == names, given


async def test_what_waits_for_another_look_waits_while_a_tenant_has_the_node(database: Database) -> None:
    async with running_server(database, reconcile=False) as server:
        node_id, other = [await hello(server.agent, name) for name in ("ours", "another")]
        for each in (other, node_id):
            await ingest(server.agent, each, {"gpus": {"enumeration": "complete", "gpus": [{"uuid": "GPU-shared"}]}})
            await apply_pending(database, utc_now)
        assert (await conflicts(database).activate()).done == 0
        await server.operator.data(SET, id=node_id, trust="TENANT_CONTROLLED")
        await ingest(server.agent, other, {"gpus": {"enumeration": "complete", "gpus": []}})
        await apply_pending(database, utc_now)
        async with database.transaction() as tx:
            await tx.execute("update node_inventory set due_at = now() where node_id = $1", node_id)
        assert (await conflicts(database).activate()).done == 0
        await ingest(server.agent, node_id, {"os": {"kernel": "6.9.0"}})
        await apply_pending(database, utc_now)
        await server.operator.data(SET, id=node_id, trust="PLATFORM")
        await apply_pending(database, utc_now)
        # Its set is the tenant's still.
        assert (await conflicts(database).activate()).done == 0


async def test_what_came_under_a_tenants_control_is_never_applied_later(database: Database) -> None:
    async with running_server(database, reconcile=False) as server:
        node_id = await hello(server.agent, "n1")
        await ingest(server.agent, node_id, HOST)
        await apply_pending(database, utc_now)
        before = await _kept(server)
        await server.operator.data(SET, id=node_id, trust="TENANT_CONTROLLED")
        # Not noted before the platform takes over.
        await ingest(server.agent, node_id, THEIRS)
        await server.operator.data(SET, id=node_id, trust="PLATFORM")
        await apply_pending(database, utc_now)
        assert await _kept(server) == before
        assert (await _standing(server, node_id))["inventoryStatus"]["state"] == "APPLIED"


async def test_a_pool_that_changed_under_a_tenants_control_divides_the_node_afterwards(database: Database) -> None:
    async with running_server(database, reconcile=False) as server:
        node_id = await hello(server.agent, "n1")
        await ingest(server.agent, node_id, HOST)
        await apply_pending(database, utc_now)
        await server.operator.data(SET, id=node_id, trust="TENANT_CONTROLLED")
        site = await server.operator.data('mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }')
        shared = {"name": "p", "siteId": site["createSite"]["id"], "class": "VPS_HOST", "sharing": "TIMESLICE"}
        create = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
        pool = (await server.operator.data(create, input=shared))["createPool"]["id"]
        assign = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
        await server.operator.data(assign, id=node_id, pool=pool)
        await apply_pending(database, utc_now)
        devices = "query ($id: ID!) { computeNode(id: $id) { devices { totalCount } } }"
        assert (await server.operator.data(devices, id=node_id))["computeNode"]["devices"]["totalCount"] == 1
        await server.operator.data(SET, id=node_id, trust="PLATFORM")
        await apply_pending(database, utc_now)
        assert (await server.operator.data(devices, id=node_id))["computeNode"]["devices"]["totalCount"] == 1 + 4
