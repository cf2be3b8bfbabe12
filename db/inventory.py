"""Inventory on its way in: hash reports, section bytes, and the claim of what is ready to be applied."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, Final

from db.connections import Row
from db.database import Transaction
from db.liveness import SEEN
from db.node_changes import tell_changed
from db.tables.inventory import CONTESTED, DUE, HELD, PENDING
from domain.device_plan import Waits
from domain.hardware import IDENTITY_SECTIONS, RECENT_MINUTES
from domain.ids import NodeId, TenantId

_TOLD: Final = ("inventoryStatus",)
# Of a thousand rows that nothing is to be done for: a row's attributes are looked up in Python.
_NODE_ID: Final = itemgetter("node_id")
_CHANGED: Final = itemgetter("changed")
# Rows are locked in order of their ids, liveness before inventory: batches that name the same nodes take turns, and
# an unchanged heartbeat locks no inventory row.
RECORD = f"""
with input as (
    select * from unnest($1::text[], $2::text[], $3::jsonb[], $4::float8[]) as i (tenant_id, node_id, hashes, skew)
), alive as materialized (
    select l.node_id, l.away, i.hashes, i.skew from node_liveness l join input i using (tenant_id, node_id)
    order by l.node_id for update of l
), seen as ({SEEN}), wanted as (
    select a.node_id, a.away, a.hashes, array(
        select h.key from jsonb_each_text(a.hashes) h
        where not exists (
            select from inventory_sections s
            where s.node_id = a.node_id and s.name = h.key and s.sha256 = h.value
        )
        order by h.key
    ) as missing
    from alive a
), held as materialized (
    select n.node_id from node_inventory n join wanted w using (node_id)
    where n.reported is distinct from w.hashes or n.missing <> '{{}}'
    order by n.node_id for update of n
), noted as (
    update node_inventory n set reported = w.hashes, reported_at = now(), missing = w.missing
    from wanted w join held using (node_id)
    where n.node_id = w.node_id
        and (n.reported is distinct from w.hashes or n.missing is distinct from w.missing)
    returning n.node_id
)
select w.node_id, w.missing, w.away is not null as is_back,
    exists (select from noted n where n.node_id = w.node_id) as changed
from wanted w
"""  # noqa: S608 - text of ours
_INGEST = """
with input as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::jsonb[])
        as i (tenant_id, node_id, name, sha256, content, document)
), owner as materialized (
    select n.node_id, n.tenant_id, n.reported from node_inventory n
    where n.node_id = any ($2)
        and exists (select from input i where i.node_id = n.node_id and i.tenant_id = n.tenant_id)
    order by n.node_id for update of n
), stored as (
    insert into inventory_sections (node_id, name, sha256, tenant_id, content, document)
    select i.node_id, i.name, i.sha256, o.tenant_id, i.content, i.document from input i join owner o using (node_id)
    on conflict do nothing
), merged as (
    select o.node_id, array_agg(i.name order by i.name) as names,
        coalesce(o.reported, '{}'::jsonb) || jsonb_object_agg(i.name, i.sha256) as reported
    from owner o join input i using (node_id) group by o.node_id, o.reported
), wanted as (
    select m.node_id, m.reported, array(
        select h.key from jsonb_each_text(m.reported) h
        where h.key <> all (m.names) and not exists (
            select from inventory_sections s
            where s.node_id = m.node_id and s.name = h.key and s.sha256 = h.value
        )
        order by h.key
    ) as missing
    from merged m
), noted as (
    update node_inventory n set reported = w.reported, reported_at = now(), missing = w.missing
    from wanted w
    where n.node_id = w.node_id and (n.reported, n.missing) is distinct from (w.reported, w.missing)
    returning n.node_id
)
select m.node_id, m.names, exists (select from noted n where n.node_id = m.node_id) as changed from merged m
"""
# Rows that another reconciler holds are skipped: it is on them. PENDING is text of ours, never input.
_CLAIM = f"""
select i.node_id, i.tenant_id, i.reported, i.reported_at, i.applied, i.applied_digest, i.snapshot_id, n.trust,
    n.no_schedule_reasons, n.identity_key, n.hardware_key, n.hardware_key_trusted, n.hardware_conflict,
    n.hardware_evidence, n.fingerprint, n.inventory_labels, n.accepted_gpus, i.held_by, i.contested, i.due_at,
    exists (
        select from inventory_snapshots s cross join unnest($3::text[]) w (name)
        where s.node_id = i.node_id and s.received_at > now() - make_interval(mins => $4) and s.id <> i.snapshot_id
            and s.sections ->> w.name = i.reported ->> w.name
            and s.sections ->> w.name is distinct from i.applied ->> w.name
            and s.trust <> 'tenant-controlled' and i.applied_digest not like 'advisory:%'
    ) as came_back
from node_inventory i join nodes n on n.id = i.node_id
where {PENDING} and ($2::text is null or i.node_id = $2)
order by i.reported_at limit $1
for update of i, n skip locked
"""  # noqa: S608
_SECTIONS = """
select s.node_id, s.name, s.sha256, s.content
from unnest($1::text[], $2::text[], $3::text[]) as w (node_id, name, sha256)
join inventory_sections s using (node_id, name, sha256)
"""
_APPLIED = """
update node_inventory n set applied = n.reported, applied_digest = a.digest, applied_at = now(),
    snapshot_id = a.snapshot_id, gpu_models_version = $2, replan = false, failed = null, failed_at = null, error = null,
    held_by = a.held_by, contested = a.contested, due_at = a.due_at
from jsonb_to_recordset($1)
    as a (node_id text, digest text, snapshot_id text, held_by text[], contested text[], due_at timestamptz)
where n.node_id = a.node_id
"""
_FAILED = """
update node_inventory set failed = $2, failed_at = now(), error = $3
where node_id = $1 and reported = $2 returning tenant_id
"""
# What a tenant says is not planned from (rule 9): looked at again it would be the same again.
_PLANNED = """
i.applied_digest not like 'advisory:%'
    and not exists (select from nodes n where n.id = i.node_id and n.trust = 'tenant-controlled')
"""
# What nobody has is its holder's as long as there is one: the node whose trusted key is this one's too.
_REPLAN_CONFLICTS = f"""
update node_inventory set replan = true
where node_id in (
    select i.node_id from node_inventory i
    where {CONTESTED} and not i.replan and {_PLANNED} and exists (
        select from unnest(i.contested) c (device_id)
        where not exists (select from devices d where d.id = c.device_id and d.node_id <> i.node_id)
    ) and not exists (
        select from nodes n join nodes h on h.hardware_key = n.hardware_key and h.hardware_key_trusted and h.id <> n.id
        where n.id = i.node_id and n.hardware_conflict is not null
    )
    order by i.node_id limit $1 for update of i skip locked
)
returning node_id
"""  # noqa: S608
_REPLAN_RELEASED = f"""
update node_inventory set replan = true
where node_id in (
    select i.node_id from node_inventory i
    where {HELD} and not i.replan and {_PLANNED} and exists (
        select from unnest(i.held_by) h (booking_id)
        where not exists (
            select from bookings b where b.id = h.booking_id and b.node_id = i.node_id and not isempty(b.during)
                and coalesce(upper(b.during), 'infinity') > now()
        )
    )
    order by i.node_id limit $1 for update of i skip locked
)
returning node_id
"""  # noqa: S608
# The time is taken with it: a node whose plan it changes nothing of is not asked again.
_REPLAN_DUE = f"""
update node_inventory set replan = true, due_at = null
where node_id in (
    select i.node_id from node_inventory i where {DUE} and i.due_at <= now() and not i.replan and {_PLANNED}
    order by i.due_at limit $1 for update of i skip locked
)
returning node_id
"""  # noqa: S608 - as above
# Only what is older: servers of two versions that run side by side do not undo each other's plans.
_REPLAN_NAMED_BEFORE = f"""
update node_inventory set replan = true
where node_id in (
    select node_id from node_inventory
    where gpu_models_version < $1 and applied is not null and not replan
    order by node_id
    limit greatest($2 - (select count(*) from (select from node_inventory where {PENDING} limit $2) waiting), 0)
    for update skip locked
)
returning node_id
"""  # noqa: S608 - as above
_RETRY_FAILED = "update node_inventory set failed = null where failed is not null"


@dataclass(frozen=True, slots=True)
class HashReport:
    """The hashes that a node reports, by section name, and by how many seconds its clock was ahead, when it told."""

    tenant_id: TenantId
    node_id: NodeId
    hashes: dict[str, str]
    skew_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ReceivedSection:
    """A verified section on its way into the store."""

    tenant_id: TenantId
    node_id: NodeId
    name: str
    sha256: str
    content: bytes
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Applied:
    """What stands after applying a node's set: its digest, its snapshot, and what its plan waits for."""

    node_id: NodeId
    digest: str
    snapshot_id: str
    waits: Waits


async def record_reports(tx: Transaction, reports: Sequence[HashReport]) -> dict[NodeId, Row]:
    """Note many nodes' hashes in one statement; returns (missing, changed, is_back) per node that its tenant has.

    Each node may stand once in `reports`. A report that changes nothing writes no inventory row. `is_back` says that
    the node was unreachable or lost.
    """
    rows = await tx.fetch(
        RECORD,
        [report.tenant_id for report in reports],
        [report.node_id for report in reports],
        [report.hashes for report in reports],
        [report.skew_seconds for report in reports],
    )
    changed = {NodeId(row.node_id) for row in filter(_CHANGED, rows)}
    await tell_changed(tx, [(each.tenant_id, each.node_id) for each in reports if each.node_id in changed], _TOLD)
    return dict(zip(map(_NODE_ID, rows), rows, strict=True))


async def store_sections(tx: Transaction, sections: Sequence[ReceivedSection]) -> dict[NodeId, list[str]]:
    """Store many nodes' sections in one statement and count them as reported; returns the names stored per node.

    A node stands there for one tenant; one that this tenant does not have is left out.
    """
    rows = await tx.fetch(
        _INGEST,
        [section.tenant_id for section in sections],
        [section.node_id for section in sections],
        [section.name for section in sections],
        [section.sha256 for section in sections],
        [section.content for section in sections],
        [dict(section.document) for section in sections],
    )
    tenants = {section.node_id: section.tenant_id for section in sections}
    await tell_changed(tx, [(tenants[row.node_id], NodeId(row.node_id)) for row in rows if row.changed], _TOLD)
    return {NodeId(row.node_id): row.names for row in rows}


async def claim_pending(tx: Transaction, limit: int, node_id: NodeId | None = None) -> list[Row]:
    """Lock up to `limit` nodes whose inventory is ready to be applied (or that one), oldest report first.

    `came_back` says that what identifies the reported machine was the node's shortly before, and is not now.
    """
    return await tx.fetch(_CLAIM, limit, node_id, IDENTITY_SECTIONS, RECENT_MINUTES)


async def section_contents(
    tx: Transaction, wanted: Sequence[tuple[NodeId, str, str]]
) -> dict[tuple[NodeId, str, str], bytes]:
    """Return the bytes of (node, name, sha256) triples."""
    if not wanted:
        return {}
    nodes, names, hashes = (list(column) for column in zip(*wanted, strict=True))
    rows = await tx.fetch(_SECTIONS, nodes, names, hashes)
    return {(NodeId(row.node_id), row.name, row.sha256): row.content for row in rows}


async def mark_applied(tx: Transaction, applied: Sequence[Applied], gpu_models_version: int) -> None:
    """Note the sets just applied, and the table of GPU models they were planned by."""
    if applied:
        rows = [
            {"node_id": each.node_id, "digest": each.digest, "snapshot_id": each.snapshot_id, **asdict(each.waits)}
            for each in applied
        ]
        await tx.execute(_APPLIED, rows, gpu_models_version)


async def mark_failed(tx: Transaction, node_id: NodeId, hashes: Mapping[str, str], error: str) -> None:
    """Note that this set could not be applied, and why; the last good inventory stays."""
    tenant_id = await tx.value(_FAILED, node_id, dict(hashes), error)
    if tenant_id is not None:
        await tell_changed(tx, [(tenant_id, node_id)], _TOLD)


async def replan_released(tx: Transaction, limit: int) -> int:
    """Make nodes pending whose plans were held by bookings of which one has ended. Returns how many."""
    return len(await tx.fetch(_REPLAN_RELEASED, limit))


async def replan_due(tx: Transaction, limit: int) -> int:
    """Make nodes pending whose plans time alone changes now. Returns how many."""
    return len(await tx.fetch(_REPLAN_DUE, limit))


async def replan_conflicts(tx: Transaction, limit: int) -> int:
    """Make nodes pending that report devices of which another node has let go. Returns how many."""
    return len(await tx.fetch(_REPLAN_CONFLICTS, limit))


async def replan_named_before(tx: Transaction, gpu_models_version: int, waiting_max: int) -> int:
    """Make nodes pending that were planned by an earlier table, while fewer than that many wait; returns how many."""
    return len(await tx.fetch(_REPLAN_NAMED_BEFORE, gpu_models_version, waiting_max))


async def retry_failed(tx: Transaction) -> None:
    """Make failed sets pending again: a newer server may know how to apply them."""
    await tx.execute(_RETRY_FAILED)
