"""Signs of life: who listens, who is silent, and what a silence is said to be. All times are the database's."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.connections import Row
from db.database import Transaction
from db.node_changes import tell_changed
from domain.ids import NodeId, TenantId
from domain.liveness import LIFECYCLE_TYPES, LISTENING_GAP_SECONDS, SKEW_CLEARED_SECONDS
from domain.node import LEASE_SECONDS

_LISTEN = """
update listening set at = now(), since = case when at < now() - make_interval(secs => $1) then now() else since end
"""
# Who has not listened lately may not have listened since.
_LISTENED = """
select case when at < now() - make_interval(secs => $1) then 0 else extract(epoch from now() - since)::float8 end
from listening
"""
_DOUBT_SECONDS = 5
"""How long before a lease's end it may have ended by the time that what began before is committed."""
# A lease that has ended and holds again was seen in between by whoever looked, though who tells of leases did not look:
# then nobody knows what was told. It costs nothing, as the row is written anyway.
SEEN = f"""
    update node_liveness l set last_seen_at = now(), away = null,
        told_connected =
            nullif(l.told_connected and l.last_seen_at > now() - interval '{LEASE_SECONDS - _DOUBT_SECONDS} s', false),
        clock_skew_seconds = coalesce(a.skew, l.clock_skew_seconds)
    from alive a where l.node_id = a.node_id
"""  # noqa: S608 - a number of ours
"""What a sign of life writes, of nodes that are locked as `alive` with the skew that they told."""

# Rows are locked in order of their ids: batches that name the same nodes take turns.
_HEAR = f"""
with input as (
    select * from unnest($1::text[], $2::text[], $3::float8[]) as i (tenant_id, node_id, skew)
), alive as materialized (
    select l.node_id, l.away, i.skew from node_liveness l join input i using (tenant_id, node_id)
    order by l.node_id for update of l
), seen as ({SEEN})
select a.node_id, a.away is not null as is_back, n.generation from alive a join nodes n on n.id = a.node_id
"""  # noqa: S608 - text of ours
_OF_NOTE = """
(
    select node_id from node_liveness
    where node_id > $1 and (
        last_seen_at < now() - make_interval(secs => $3) or away is not null or abs(clock_skew_seconds) >= $4
    )
    order by node_id limit $2
)
union
(
    select node_id from node_conditions
    where type = any ($5) and status = 'true' and node_id > $1 order by node_id limit $2
)
order by node_id limit $2
"""
_FACTS = """
select n.id as node_id, n.tenant_id, n.trust, n.no_schedule_reasons, p.policy,
    extract(epoch from now() - l.last_seen_at)::float8 as silent_seconds, l.last_seen_at, l.away, l.clock_skew_seconds
from node_liveness l join nodes n on n.id = l.node_id left join pools p on p.id = n.pool_id
where n.id = any ($1) and l.last_seen_at is not null and n.provision_state <> 'retired'
"""
_HELD = f"{_FACTS} for no key update of n, l skip locked"
_SAVE = """
update node_liveness l set away = s.away from unnest($1::text[], $2::text[]) s (node_id, away)
where l.node_id = s.node_id and l.away is distinct from s.away
"""
# Whether a lease holds, time alone decides: that it turned is told by who looks.
_TURNED = """
with turned as (
    select node_id from node_liveness
    where told_connected is distinct from coalesce(last_seen_at > now() - make_interval(secs => $1), false)
    order by node_id limit $2 for no key update skip locked
)
update node_liveness l set told_connected = coalesce(last_seen_at > now() - make_interval(secs => $1), false)
from turned t where l.node_id = t.node_id
returning l.tenant_id, l.node_id
"""


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """A node that was heard of, and by how many seconds its clock was ahead; None when it did not tell the time."""

    tenant_id: TenantId
    node_id: NodeId
    skew_seconds: float | None = None


async def listen(tx: Transaction) -> None:
    """Note that nodes can be heard now; after a gap without such a note it is since now."""
    await tx.execute(_LISTEN, LISTENING_GAP_SECONDS)


async def listened_seconds(tx: Transaction) -> float:
    """Return for how long nodes could be heard without a gap; 0 when nobody listens."""
    return float(await tx.value(_LISTENED, LISTENING_GAP_SECONDS))


async def hear(tx: Transaction, signs: Sequence[SignOfLife]) -> list[Row]:
    """Note signs of life in one statement; returns (node_id, is_back, generation) of those nodes that their tenant has.

    Each node may stand once. `is_back` says that it was unreachable or lost.
    """
    tenants, nodes = [sign.tenant_id for sign in signs], [sign.node_id for sign in signs]
    return await tx.fetch(_HEAR, tenants, nodes, [sign.skew_seconds for sign in signs])


async def of_note(tx: Transaction, after: str, limit: int) -> list[NodeId]:
    """Return the next nodes after an id, of whatever tenant, of which there may be something to say.

    Their lease has ended, they are said to be away, their clock may be off, or it was said to be.
    """
    rows = await tx.fetch(_OF_NOTE, after, limit, LEASE_SECONDS, SKEW_CLEARED_SECONDS, list(LIFECYCLE_TYPES))
    return [NodeId(row.node_id) for row in rows]


async def facts(tx: Transaction, node_ids: Sequence[NodeId], *, locked: bool) -> list[Row]:
    """Return what liveness is judged by, of those nodes that are not retired.

    `locked` keeps it as it is until the end, leaving out what somebody else has.
    """
    return await tx.fetch(_HELD if locked else _FACTS, list(node_ids))


async def save_away(tx: Transaction, away: Sequence[tuple[NodeId, str | None]]) -> None:
    """Write what silences are said to be."""
    await tx.execute(_SAVE, [node_id for node_id, _ in away], [said for _, said in away])


async def turn_leases(tx: Transaction, limit: int) -> int:
    """Tell of up to `limit` nodes whose lease has ended or holds again, or may have in between; returns how many."""
    rows = await tx.fetch(_TURNED, LEASE_SECONDS, limit)
    await tell_changed(tx, [(TenantId(row.tenant_id), NodeId(row.node_id)) for row in rows], ["connectivity"])
    return len(rows)
