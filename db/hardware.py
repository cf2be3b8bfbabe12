"""Hardware keys of nodes: which node has one, what is stored of it, and the nodes that contend for one."""

from collections.abc import Collection, Sequence

from db.connections import Row
from db.database import Transaction
from domain.hardware import Hardware, HardwareConflict
from domain.hardware_key import Evidence, Field
from domain.ids import NodeId, TenantId

# Whoever is about to take a key waits here for everybody else who is: what is read after that holds until the end of
# the transaction. In one order, so that nobody waits for who waits for him.
_LOCK = """
select pg_advisory_xact_lock(k.number)
from (select distinct hashtextextended(key, 0) as number from unnest($1::text[]) u (key) order by 1) k
"""
_HOLDERS = "select hardware_key, id, tenant_id from nodes where hardware_key = any ($1) and hardware_key_trusted"
_CONTENDERS = """
select c.id, c.tenant_id, c.hardware_key, c.hardware_key_trusted, c.hardware_conflict, c.hardware_evidence,
    c.fingerprint, c.no_schedule_reasons
from nodes c
where c.id = $2 and c.tenant_id = $1 or c.id = (
    select h.id from nodes n join nodes h on h.hardware_key = n.hardware_key and h.hardware_key_trusted
    where n.id = $2 and n.tenant_id = $1 and h.id <> n.id
)
order by c.id for update
"""
# What is booked stays where it is, with what it is a part of, until its bookings end.
_LET_GO = """
delete from devices d where d.node_id = $1 and not exists (
    select from bookings b join devices c on c.id = b.device_id
    where d.id in (c.id, c.parent_id) and not isempty(b.during) and coalesce(upper(b.during), 'infinity') > now()
)
"""
_PLAN_ANEW = "update node_inventory set replan = true where node_id = any ($1)"
_TAKE_REFUSED = "update node_inventory set failed = null, failed_at = null, error = null where node_id = $1"


def hardware_of(row: Row) -> Hardware:
    """Return what a row of nodes has of hardware, as the domain sees it."""
    return Hardware(
        key=row.hardware_key,
        trusted=row.hardware_key_trusted,
        conflict=HardwareConflict(row.hardware_conflict) if row.hardware_conflict else None,
        evidence=tuple(Evidence(**{**each, "field": Field(each["field"])}) for each in row.hardware_evidence),
        fingerprint=row.fingerprint,
    )


async def lock_holders(tx: Transaction, keys: Collection[str]) -> list[Row]:
    """Return (hardware_key, id, tenant_id) of the nodes that have these keys, of whatever tenant.

    Nobody else takes one of them before the transaction ends.
    """
    if not keys:
        return []
    await tx.execute(_LOCK, list(keys))
    return await tx.fetch(_HOLDERS, list(keys))


async def lock_contenders(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> list[Row]:
    """Lock a node of the tenant and whoever has the trusted key that is also its own, of whatever tenant."""
    return await tx.fetch(_CONTENDERS, tenant_id, node_id)


async def let_go_of_devices(tx: Transaction, node_id: NodeId) -> None:
    """Delete a node's devices that are not booked: another node takes them."""
    await tx.execute(_LET_GO, node_id)


async def plan_anew(tx: Transaction, node_ids: Sequence[NodeId]) -> None:
    """Make nodes pending, to be planned by what was decided."""
    await tx.execute(_PLAN_ANEW, list(node_ids))


async def take_refused(tx: Transaction, node_id: NodeId) -> None:
    """Make a refused set pending again."""
    await tx.execute(_TAKE_REFUSED, node_id)
