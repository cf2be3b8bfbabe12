"""Snapshots: appended once, read by id, by digest, by time and in history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from db.connections import Row
from db.database import Reader, Transaction
from domain.ids import NodeId, SnapshotId, TenantId

_APPEND = """
insert into inventory_snapshots (id, tenant_id, node_id, digest, sections, trust, received_at)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::text[], $7::timestamptz[])
"""
_BEFORE = """
select 'Snapshot' as typename, s.*, b.id as of_parent
from unnest($1::text[], $2::text[]) as b (id, node_id)
cross join lateral (
    select * from inventory_snapshots s
    where s.node_id = b.node_id and s.tenant_id = $3 and s.id < b.id order by s.id desc limit 1
) s
"""
_DOCUMENTS = """
select node_id, name, sha256, content, received_at from inventory_sections
join unnest($1::text[], $2::text[], $3::text[]) as w (node_id, name, sha256) using (node_id, name, sha256)
where tenant_id = $4
"""


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """An applied set, to append."""

    id: SnapshotId
    tenant_id: TenantId
    node_id: NodeId
    digest: str
    sections: Mapping[str, str]
    trust: str
    received_at: datetime


async def append_snapshots(tx: Transaction, new: Sequence[NewSnapshot]) -> None:
    """Append snapshots in one statement."""
    if not new:
        return
    await tx.execute(
        _APPEND,
        [snapshot.id for snapshot in new],
        [snapshot.tenant_id for snapshot in new],
        [snapshot.node_id for snapshot in new],
        [snapshot.digest for snapshot in new],
        [dict(snapshot.sections) for snapshot in new],
        [snapshot.trust for snapshot in new],
        [snapshot.received_at for snapshot in new],
    )


async def snapshots_before(source: Reader, tenant_id: TenantId, pairs: Sequence[tuple[str, str]]) -> dict[str, Row]:
    """Return, for each (snapshot id, node id), the same node's snapshot before it, by the first's id."""
    rows = await source.fetch(_BEFORE, [pair[0] for pair in pairs], [pair[1] for pair in pairs], tenant_id)
    return {row.of_parent: row for row in rows}


async def contents(
    source: Reader, tenant_id: TenantId, wanted: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], Row]:
    """Return the stored sections of (node, name, sha256) triples."""
    nodes, names, hashes = (list(column) for column in zip(*wanted, strict=True))
    rows = await source.fetch(_DOCUMENTS, nodes, names, hashes, tenant_id)
    return {(row.node_id, row.name, row.sha256): row for row in rows}
