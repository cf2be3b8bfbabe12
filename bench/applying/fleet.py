"""The fleet that is applied: simulated nodes with eight GPUs, reported as agents report them and applied by nobody."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Final

import asyncpg

from agent.inventory import Inventory, inventory_of
from agent.simulator.material import Material
from agent.simulator.models import server_of
from agent.simulator.node import NodeState, boot_id, first_state, hostname, identity_key
from agent.simulator.sections import sections_of
from db.access import ensure_tenant
from db.database import Database, Transaction
from db.identifiers import new_id
from db.inventory import HashReport, ReceivedSection, record_reports, store_sections
from db.migrate import migrate
from db.nodes import Arrival, Hello, register
from domain import sections
from domain.ids import NodeId, TenantId
from domain.node import provision_state_at_join

GPUS: Final = 8
_SEED: Final = 5
_BATCH: Final = 200
_VACUUM_SECONDS_MAX: Final = 600


def report_fleet(dsn: str, nodes: int) -> float:
    """Bring a new database up to date and report so many nodes; returns the seconds that the reports took."""
    return asyncio.run(_reported(dsn, nodes))


async def _reported(dsn: str, nodes: int) -> float:
    await migrate(dsn)
    database = await Database.connect(dsn)
    try:
        begun = time.monotonic()
        async with database.transaction() as tx:
            tenant_id = await ensure_tenant(tx, TenantId(new_id("tenant")), "bench")
        made = _made(nodes)
        while batch := list(islice(made, _BATCH)):
            async with database.transaction() as tx:
                await _report(tx, tenant_id, batch)
        took = time.monotonic() - begun
    finally:
        await database.close()
    connection = await asyncpg.connect(dsn, command_timeout=_VACUUM_SECONDS_MAX)
    try:
        await connection.execute("vacuum analyze")
    finally:
        await connection.close()
    return took


def _made(nodes: int) -> Iterator[tuple[Material, NodeState, Inventory]]:
    indexes = (index for index in count() if len(server_of(index).gpu_places) == GPUS)
    for index in islice(indexes, nodes):
        material = Material(_SEED, index)
        state = first_state(material)
        yield material, state, inventory_of(sections_of(material, state))


async def _report(tx: Transaction, tenant_id: TenantId, batch: Sequence[tuple[Material, NodeState, Inventory]]) -> None:
    reports: list[HashReport] = []
    received: list[ReceivedSection] = []
    for material, state, inventory in batch:
        arrival = Arrival(new_id("sess"), NodeId(new_id("node")), provision_state_at_join(checks=0))
        node_id = await register(tx, tenant_id, _hello(material, state), arrival)
        hashes = {entry.name: entry.sha256 for entry in inventory.hashes}
        reports.append(HashReport(tenant_id, node_id, hashes))
        for name, content in inventory.contents.items():
            document = sections.as_json(sections.verify(name, hashes[name], content))
            received.append(ReceivedSection(tenant_id, node_id, name, hashes[name], content, document))
    await record_reports(tx, reports)
    await store_sections(tx, received)


def _hello(material: Material, state: NodeState) -> Hello:
    return Hello(
        identity_key=identity_key(material),
        hostname=hostname(state.index),
        display_name=None,
        management_address=None,
        agent_version="bench",
        protocol="1",
        features=(),
        boot_id=boot_id(material, state.boots),
    )
