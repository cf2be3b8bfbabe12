"""What nodes' conditions are and what keeps work off them, written together with the events that tell it."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from db.conditions import NodeCondition, condition_of, conditions_of_types, save_conditions
from db.connections import Row
from db.database import Transaction
from db.events import NewEvent, write_events
from domain.conditions import Condition
from domain.ids import NodeId, TenantId
from domain.node import Trust
from domain.pool import PoolClass
from domain.standing import Changed, Standing

_NODES = """
select n.id as node_id, n.tenant_id, n.trust, n.no_schedule_reasons, p.pool_class
from unnest($1::text[], $2::text[]) i (tenant_id, id) join nodes n using (tenant_id, id)
left join pools p on p.id = n.pool_id
where n.provision_state <> 'retired' order by n.id
"""
# In order of their ids, so that batches that name the same nodes take turns.
_LOCKED = f"{_NODES} for no key update of n"
# Only where it differs: each version of a node's row costs an entry in every index.
_SAVE = """
update nodes n set no_schedule_reasons = s.reasons
from (
    select node_id, array(select jsonb_array_elements_text(reasons)) as reasons
    from jsonb_each($1) as r (node_id, reasons)
) s
where n.id = s.node_id and n.no_schedule_reasons <> s.reasons
"""


async def standings(tx: Transaction, nodes: Sequence[Row], types: Sequence[str]) -> dict[NodeId, Standing]:
    """Return what is stored of some conditions of nodes, of which rows with the other facts of a standing were read.

    What is to be changed must be locked by whoever read those rows.
    """
    known: dict[str, dict[str, Condition]] = {row.node_id: {} for row in nodes}
    for row in await conditions_of_types(tx, list(known), types):
        known[row.node_id][row.type] = condition_of(row)
    return {
        NodeId(row.node_id): Standing(
            node_id=NodeId(row.node_id),
            tenant_id=TenantId(row.tenant_id),
            trust=Trust(row.trust),
            conditions=known[row.node_id],
            no_schedule_reasons=tuple(row.no_schedule_reasons),
        )
        for row in nodes
    }


async def standings_of(
    tx: Transaction, nodes: Sequence[tuple[TenantId, NodeId]], types: Sequence[str], *, locked: bool
) -> dict[NodeId, Standing]:
    """Return the same of those nodes that their tenant has, with the class of their pools.

    `locked` keeps the nodes as they are until the end.
    """
    tenants, ids = [tenant_id for tenant_id, _ in nodes], [node_id for _, node_id in nodes]
    rows = await tx.fetch(_LOCKED if locked else _NODES, tenants, ids)
    classes = {row.node_id: PoolClass(row.pool_class) for row in rows if row.pool_class is not None}
    found = await standings(tx, rows, types)
    return {node_id: replace(each, pool_class=classes.get(node_id)) for node_id, each in found.items()}


async def lock_nodes(tx: Transaction, node_ids: Collection[NodeId]) -> None:
    """Keep nodes as they are until the transaction ends."""
    await tx.execute("select from nodes where id = any ($1) order by id for no key update", sorted(node_ids))


async def save_changes(tx: Transaction, changes: Sequence[tuple[Standing, Changed]]) -> None:
    """Write what changed of nodes' conditions and reasons, with the events that tell it."""
    if not changes:
        return
    await save_conditions(
        tx,
        [
            NodeCondition(standing.tenant_id, standing.node_id, condition)
            for standing, changed in changes
            for condition in changed.conditions
        ],
    )
    reasons = {standing.node_id: list(changed.no_schedule_reasons) for standing, changed in changes}
    await tx.execute(_SAVE, reasons)
    await write_events(
        tx,
        [
            NewEvent(standing.tenant_id, standing.node_id, event.type, event.payload)
            for standing, changed in changes
            for event in changed.events
        ],
    )
