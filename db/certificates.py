"""The identity certificates that nodes use."""

from db.database import Transaction
from domain.certificate import Certificate
from domain.ids import NodeId, TenantId

# An agent that still has an older one tells nothing new.
_SAVE = """
insert into node_certificates as c (node_id, tenant_id, serial, not_before, not_after)
select n.id, $2, $3, $4, $5 from nodes n where n.id = $1 and n.trust <> 'tenant-controlled'
on conflict (node_id) do update
set serial = excluded.serial, not_before = excluded.not_before, not_after = excluded.not_after
where (excluded.not_before, excluded.not_after, excluded.serial) > (c.not_before, c.not_after, c.serial)
"""


async def save_certificate(tx: Transaction, tenant_id: TenantId, node_id: NodeId, told: Certificate) -> None:
    """Keep a node's certificate where it is newer than the one that is known."""
    await tx.execute(_SAVE, node_id, tenant_id, told.serial, told.not_before, told.not_after)
