"""Whatever a tenant's machine reports is history and nothing else (rule 9): every other row stays as it was written."""

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from db.database import Database
from domain.digest import inventory_digest
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.images import Image, ImagesSection
from domain.documents.os import OsSection
from domain.documents.system import SystemSection
from domain.sections import encode, gpu_uuid
from reconcilers.conflicts import conflicts
from reconcilers.inventory import apply_pending
from tests.domain import strategies
from tests.support.booking import book, end_bookings
from tests.support.rows import HISTORY, REPORTED, Rows, written_rows
from tests.support.server import INGEST, RECORD, RunningServer, hash_of, hello, running_server, section
from web.app import utc_now

SET: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { trust } }"
END: Final = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { inventoryStatus { state } } }"
STATUS: Final = "query ($id: ID!) { computeNode(id: $id) { inventoryStatus { state appliedDigest } } }"
# What a sign of life writes.
ALIVE: Final = frozenset({"node_liveness"})
NAMES: Final = st.sampled_from([None, "NVIDIA H100 80GB HBM3", "NVIDIA H999 MADE UP", "Graphics Device", "N/A"])
IMAGES: Final = st.builds(
    ImagesSection,
    images=st.lists(
        st.builds(
            Image,
            reference=st.sampled_from(["os:1", "os:2", "theirs:1"]),
            digest=st.sampled_from([None, "sha256:aa"]),
            size_bytes=st.sampled_from([None, 0, 5]),
        ),
        max_size=3,
    ).map(tuple),
)
SYSTEM: Final = st.builds(
    SystemSection,
    product_uuid=st.sampled_from(
        [
            None,
            "7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f",
            "8a1f2d3b-62e4-4d9b-8a6f-4b2c3d5e6f70",
            "03000200-0400-0500-0006-000700080009",
        ]
    ),
    system_serial=st.sampled_from([None, "QX7M-0041", "QX7M-0042", "To Be Filled By O.E.M."]),
)

Machine = dict[str, Section]


@st.composite
def _machines(draw: st.DrawFn) -> Machine:
    """Draw a machine; some of its hardware may be its neighbour's."""
    machine = draw(strategies.machines())
    gpus = machine.get("gpus")
    if isinstance(gpus, GpusSection):
        named = tuple(structs.replace(gpu, name=draw(NAMES)) for gpu in gpus.gpus)
        machine["gpus"] = structs.replace(gpus, gpus=named)
    if draw(st.booleans()):
        machine["images"] = draw(IMAGES)
    if draw(st.booleans()):
        machine["system"] = draw(SYSTEM)
    return machine


@pytest.fixture
async def server(database: Database) -> Any:  # noqa: ANN401 - a generator of servers
    """A server whose reconcilers are run by the test."""
    async with running_server(database, reconcile=False) as running:
        yield running


async def _report(server: RunningServer, node_id: str, machine: Machine) -> dict[str, str]:
    """Report this set and no more, and send what is asked for; returns the hashes."""
    sections = [section(name, encode(document)) for name, document in machine.items()]
    entry = {"nodeId": node_id, "hashes": [hash_of(each) for each in sections]}
    (asked,) = (await server.agent.data(RECORD, entries=[entry]))["recordInventoryHashes"]
    assert asked["error"] is None
    wanted = [each for each in sections if each["name"] in asked["requestSections"]]
    if wanted:
        (slot,) = (await server.agent.data(INGEST, entries=[{"nodeId": node_id, "sections": wanted}]))["ingestSections"]
        assert slot["error"] is None
    return {each["name"]: each["sha256"] for each in sections}


async def _settle(database: Database) -> None:
    for _ in range(2):
        await apply_pending(database, utc_now)
        await conflicts(database).activate()
    await apply_pending(database, utc_now)


async def _rows(database: Database) -> Rows:
    async with database.session() as session:
        return await written_rows(session)


async def _platforms_view(database: Database, node_id: str) -> tuple[Rows, list[Any]]:
    """Return all but history: every row of every table, and of the node's own inventory row what is not its report."""
    rows = await _rows(database)
    async with database.session() as session:
        standing = await session.fetch(
            "select case when node_id = $1 then to_jsonb(i) - $2::text[] else to_jsonb(i) end from node_inventory i "
            "order by node_id",
            node_id,
            list(REPORTED),
        )
    changing = HISTORY | ALIVE | {"node_inventory"}
    return {name: found for name, found in rows.items() if name not in changing}, [row[0] for row in standing]


async def _start(
    server: RunningServer, database: Database, owner: Database, ours: Machine, neighbour: Machine
) -> tuple[str, str]:
    """Make the world anew: two nodes with what the platform saw of them, and bookings of some of it."""
    async with owner.transaction() as tx:
        for table in ("nodes", "outbox", "device_departures"):
            await tx.execute(f"delete from {table}")  # noqa: S608 - ours
    node_id, other = [await hello(server.agent, name) for name in ("ours", "neighbour")]
    for each, machine in ((other, neighbour), (node_id, ours)):
        await _report(server, each, {**machine, "os": OsSection(kernel="6.1.0")})
        await apply_pending(database, utc_now)
    await _settle(database)
    return node_id, other


async def _devices(database: Database, node_id: str, where: str) -> list[str]:
    query = f"select id from devices where node_id = $1 and {where} order by id"  # noqa: S608 - ours
    async with database.session() as session:
        return [row.id for row in await session.fetch(query, node_id)]


async def _trust(server: RunningServer, node_id: str, trust: str) -> None:
    await server.operator.data(SET, id=node_id, trust=trust)


async def _status(server: RunningServer, node_id: str) -> dict[str, Any]:
    return dict((await server.operator.data(STATUS, id=node_id))["computeNode"]["inventoryStatus"])


# On a database, making a failure small would take minutes.
@settings(
    suppress_health_check=list(HealthCheck),
    deadline=None,
    max_examples=15,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(_machines(), _machines(), st.lists(_machines(), min_size=1, max_size=3), st.integers(0, 2))
async def test_whatever_a_tenant_reports_only_history_changes_until_the_platform_takes_over(  # noqa: PLR0917
    server: RunningServer,
    database: Database,
    owner: Database,
    ours: Machine,
    neighbour: Machine,
    said: list[Machine],
    held: int,
) -> None:
    node_id, other = await _start(server, database, owner, ours, neighbour)
    atoms = (await _devices(database, node_id, "bookable"))[:held]
    await book(database, node_id, *atoms)
    await _trust(server, node_id, "TENANT_CONTROLLED")
    view, history = await _platforms_view(database, node_id), await _rows(database)
    for number, machine in enumerate(said):
        last = {**machine, "os": OsSection(kernel=f"6.9.{number}")}
        hashes = await _report(server, node_id, last)
        await _settle(database)
        assert await _platforms_view(database, node_id) == view
        digest = inventory_digest(hashes)
        assert await _status(server, node_id) == {"state": "ADVISORY", "appliedDigest": f"advisory:{digest}"}
    await _check_history(database, node_id, history, len(said))
    # A booking that ends takes nothing away either, and looking again writes nothing.
    await end_bookings(database, *atoms)
    settled = await _rows(database)
    await _settle(database)
    assert await _rows(database) == settled
    await _take_over(server, database, (node_id, other), last)


async def _check_history(database: Database, node_id: str, before: Rows, reports: int) -> None:
    """Only new rows, and of each report one snapshot and one event that say whose word it is."""
    after = await _rows(database)
    for name in HISTORY - {"feed_head"}:
        assert set(before[name]) <= set(after[name])
    assert len(after["inventory_snapshots"]) == len(before["inventory_snapshots"]) + reports
    async with database.session() as session:
        told = await session.fetch(
            "select node_id, type, payload ->> 'advisory' from "
            "(select * from outbox order by sequence offset $1) o where type <> 'node.changed'",
            len(before["outbox"]),
        )
        noted = await session.value("select count(*) from inventory_snapshots where trust = 'tenant-controlled'")
    assert [tuple(row) for row in told] == [(node_id, "node.inventory.changed", "true")] * reports
    assert noted == reports


async def _take_over(server: RunningServer, database: Database, nodes: tuple[str, str], last: Machine) -> None:
    """The platform's word again: nothing happens by that, and then the same report is taken for real."""
    node_id, other = nodes
    devices = (await _rows(database))["devices"]
    await _trust(server, node_id, "PLATFORM")
    await _settle(database)
    assert (await _status(server, node_id))["state"] == "ADVISORY"
    assert (await _rows(database))["devices"] == devices
    await server.operator.data(END, id=node_id)
    hashes = await _report(server, node_id, last)
    await _settle(database)
    assert await _status(server, node_id) == {"state": "APPLIED", "appliedDigest": inventory_digest(hashes)}
    gpus, images = last.get("gpus"), last.get("images")
    if isinstance(gpus, GpusSection):
        named = {uuid for gpu in gpus.gpus if (uuid := gpu_uuid(gpu)) is not None}
        theirs = set(await _devices(database, other, "device_class = 'gpu'"))
        ours = set(await _devices(database, node_id, "device_class = 'gpu' and not missing"))
        assert named - theirs <= ours
    if isinstance(images, ImagesSection):
        async with database.session() as session:
            cached = await session.fetch("select reference, digest from node_image_cache where node_id = $1", node_id)
        assert {tuple(row) for row in cached} == {(image.reference, image.digest or "") for image in images.images}
