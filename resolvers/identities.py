"""An operator decides which of two nodes a machine is."""

from db import conditions as condition_store
from db import events as event_store
from db import hardware as store
from db.conditions import NodeCondition, condition_of
from db.connections import Row
from db.database import Transaction
from db.events import NewEvent
from db.nodes import DecidedNode, save_decided
from domain.access import Permission
from domain.duplicate_identity import Contender, Settled, settle
from domain.errors import Conflict
from domain.ids import NodeId, TenantId
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One


async def resolve_duplicate_identity(context: Context, node_id: str, *, keep: bool) -> One:
    """Give the node the key that waits, or let it go without; raises NotFound, or Conflict when none waits."""
    tenant_id = context.require(Permission.OPERATE)
    found = reading.node(context, node_id)
    await found.load(context)
    async with context.transaction() as tx:
        contenders = await _contenders(tx, tenant_id, NodeId(node_id))
        node = contenders.pop(NodeId(node_id))
        holder = next(iter(contenders.values()), None)
        settled = settle(node, holder, keep=keep, now=context.services.now())
        for each in settled:
            await _save(tx, each)
        await store.plan_anew(tx, [each.node.node_id for each in settled])
        if not keep:
            await store.take_refused(tx, node.node_id)
    context.services.database.inventory_pending.set()
    return found


async def _contenders(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> dict[NodeId, Contender]:
    rows = await store.lock_contenders(tx, tenant_id, node_id)
    own = next(row for row in rows if row.id == node_id)
    # Who has the key may have changed until the rows were locked; from here on it does not.
    holders = await store.lock_holders(tx, [own.hardware_key] if own.hardware_key else [])
    if {row.id for row in holders} - {row.id for row in rows}:
        raise Conflict(f"{node_id}: another node took the hardware key meanwhile; try again")
    known: dict[str, list[Row]] = {}
    for row in await condition_store.conditions_of_nodes(tx, [row.id for row in rows]):
        known.setdefault(row.node_id, []).append(row)
    return {
        NodeId(row.id): Contender(
            node_id=NodeId(row.id),
            tenant_id=TenantId(row.tenant_id),
            hardware=store.hardware_of(row),
            conditions={each.type: condition_of(each) for each in known.get(row.id, [])},
            no_schedule_reasons=tuple(row.no_schedule_reasons),
        )
        for row in rows
    }


async def _save(tx: Transaction, settled: Settled) -> None:
    node_id, tenant_id = settled.node.node_id, settled.node.tenant_id
    await save_decided(
        tx,
        [DecidedNode(node_id=node_id, hardware=settled.hardware, no_schedule_reasons=settled.no_schedule_reasons)],
    )
    await condition_store.save_conditions(
        tx, [NodeCondition(tenant_id, node_id, condition) for condition in settled.conditions]
    )
    await event_store.write_events(
        tx, [NewEvent(tenant_id, node_id, event.type, event.payload) for event in settled.events]
    )
    if settled.lets_go:
        await store.let_go_of_devices(tx, node_id)
