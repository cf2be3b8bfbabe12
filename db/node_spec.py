"""What operators want to run on nodes, what agents say they have observed of it, and what the sweep compares."""

from collections.abc import Mapping, Sequence

from db.connections import Row
from db.database import Transaction
from db.node_changes import tell_changed
from domain.certificate import Certificate
from domain.hygiene import Upkeep
from domain.ids import NodeId, TenantId
from domain.node import Trust
from domain.node_spec import Unit

# The same again is no new generation: who sets it twice waits for nothing.
_SET = """
with found as (
    select id, units from nodes where tenant_id = $1 and id = $2 for no key update
), changed as (
    update nodes n set units = $3, generation = n.generation + 1 from found f where n.id = f.id and f.units <> $3
)
select id from found
"""
# What was never asked for cannot have been observed, and a tenant's machine says what it likes. In order of their ids,
# so that batches that name the same nodes take turns.
_OBSERVED = """
with said as materialized (
    select n.id, i.generation from unnest($1::text[], $2::text[], $3::int[]) i (tenant_id, id, generation)
    join nodes n using (tenant_id, id)
    where n.observed_generation <> i.generation and i.generation between 0 and n.generation and n.trust <> $4
    order by n.id for no key update of n
)
update nodes n set observed_generation = s.generation from said s where n.id = s.id returning n.tenant_id, n.id
"""
_OBSERVING = """
select n.id from unnest($1::text[], $2::text[], $3::int[]) i (tenant_id, id, generation)
join nodes n using (tenant_id, id) where n.observed_generation <> i.generation
"""
_NEXT = "select id from nodes where id > $1 and provision_state <> 'retired' and trust <> $3 order by id limit $2"
_FACTS = """
select n.id as node_id, n.tenant_id, n.trust, n.no_schedule_reasons, n.generation, n.observed_generation, n.units,
    n.agent_version, n.protocol, c.serial, c.not_before, c.not_after, array(
        select distinct d.driver_version from devices d
        where d.node_id = n.id and d.device_class = 'gpu' and not d.missing and d.driver_version is not null
    ) as drivers
from nodes n left join node_certificates c on c.node_id = n.id
where n.id = any ($1) and n.provision_state <> 'retired' and n.trust <> $2
"""
_HELD = f"{_FACTS} for no key update of n skip locked"


def upkeep_of(row: Row) -> Upkeep:
    """Return a row of `upkeep_facts` as the domain sees it."""
    return Upkeep(
        generation=row.generation,
        observed_generation=row.observed_generation,
        units=tuple(Unit(unit["kind"], unit["version"]) for unit in row.units),
        drivers=frozenset(row.drivers),
        agent_version=row.agent_version,
        protocol=row.protocol,
        certificate=None if row.serial is None else Certificate(row.serial, row.not_before, row.not_after),
    )


async def set_units(tx: Transaction, tenant_id: TenantId, node_id: NodeId, units: Sequence[Unit]) -> bool:
    """Replace what is to run on a node; False when the tenant has no such node."""
    document = [{"kind": unit.kind, "version": unit.version} for unit in units]
    return await tx.value(_SET, tenant_id, node_id, document) is not None


async def observing(tx: Transaction, observed: Mapping[tuple[TenantId, NodeId], int]) -> list[NodeId]:
    """Return the nodes of which that would be written, for whoever locks more nodes than these."""
    tenants, nodes = [tenant_id for tenant_id, _ in observed], [node_id for _, node_id in observed]
    return [NodeId(row.id) for row in await tx.fetch(_OBSERVING, tenants, nodes, list(observed.values()))]


async def save_observed(tx: Transaction, observed: Mapping[tuple[TenantId, NodeId], int]) -> None:
    """Write which generations agents have observed, where it changes and can be."""
    tenants, nodes = [tenant_id for tenant_id, _ in observed], [node_id for _, node_id in observed]
    rows = await tx.fetch(_OBSERVED, tenants, nodes, list(observed.values()), Trust.TENANT_CONTROLLED.value)
    await tell_changed(tx, [(TenantId(row.tenant_id), NodeId(row.id)) for row in rows], ["observedGeneration"])


async def nodes_to_sweep(tx: Transaction, after: str, limit: int) -> list[NodeId]:
    """Return the next nodes after an id, of whatever tenant, whose upkeep the platform speaks of."""
    rows = await tx.fetch(_NEXT, after, limit, Trust.TENANT_CONTROLLED.value)
    return [NodeId(row.id) for row in rows]


async def upkeep_facts(tx: Transaction, node_ids: Sequence[NodeId], *, locked: bool) -> list[Row]:
    """Return what hygiene is judged by, of those nodes whose upkeep the platform speaks of.

    `locked` keeps it as it is until the end, leaving out what somebody else has.
    """
    return await tx.fetch(_HELD if locked else _FACTS, list(node_ids), Trust.TENANT_CONTROLLED.value)
