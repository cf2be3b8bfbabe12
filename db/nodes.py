"""Nodes: hello, and which of some fit a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from db.database import Reader, Transaction
from db.declared.nodes import NODES, NodeQuery
from db.views.draft import Draft
from db.views.plan import Compiled, compile_statement
from db.views.selection import Asked, Shape
from domain.certificate import Certificate
from domain.hardware import Hardware
from domain.ids import NodeId, TenantId
from domain.node import ProvisionState, generation_at_join

# What a tenant's machine says of its agent and its boot decides nothing (rule 9).
_OURS: Final = "case when nodes.trust = 'tenant-controlled' then nodes.{0} else excluded.{0} end"
_UPSERT = f"""
insert into nodes (
    id, tenant_id, identity_key, hostname, display_name, management_address, agent_version, protocol, features,
    boot_id, provision_state, generation, role
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'host')
on conflict (tenant_id, identity_key) do update set
    hostname = coalesce(excluded.hostname, nodes.hostname),
    display_name = coalesce(excluded.display_name, nodes.display_name),
    management_address = coalesce(excluded.management_address, nodes.management_address),
    agent_version = {_OURS.format("agent_version")},
    protocol = {_OURS.format("protocol")},
    features = {_OURS.format("features")},
    boot_id = coalesce({_OURS.format("boot_id")}, nodes.boot_id)
returning id
"""  # noqa: S608 - text of ours
_SESSION = """
insert into node_liveness (node_id, tenant_id, session_id, last_seen_at) values ($1, $2, $3, now())
on conflict (node_id) do update set session_id = excluded.session_id
"""
# One version of a row whose every version costs an entry in each of its indexes.
_DECIDED = """
update nodes n set hardware_key = h.key, hardware_key_trusted = h.trusted, hardware_conflict = h.conflict,
    hardware_evidence = h.evidence, fingerprint = h.fingerprint, no_schedule_reasons = d.no_schedule_reasons,
    inventory_labels = coalesce(d.inventory_labels, n.inventory_labels)
from jsonb_to_recordset($1) d (node_id text, hardware jsonb, no_schedule_reasons text[], inventory_labels jsonb)
cross join lateral jsonb_to_record(d.hardware)
    h (key text, trusted bool, conflict text, evidence jsonb, fingerprint text)
where n.id = d.node_id and (
    n.hardware_key, n.hardware_key_trusted, n.hardware_conflict, n.hardware_evidence, n.fingerprint,
    n.no_schedule_reasons, n.inventory_labels
) is distinct from (
    h.key, h.trusted, h.conflict, h.evidence, h.fingerprint,
    d.no_schedule_reasons, coalesce(d.inventory_labels, n.inventory_labels)
)
"""
_INVENTORY = "insert into node_inventory (node_id, tenant_id) values ($1, $2) on conflict do nothing"


@dataclass(frozen=True, slots=True)
class Hello:
    """What a node says of itself when its agent starts."""

    identity_key: str
    hostname: str | None
    display_name: str | None
    management_address: str | None
    agent_version: str | None
    protocol: str | None
    features: tuple[str, ...]
    boot_id: str | None
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a hello is given: its session, and the id and state of the node if this is its first."""

    session_id: str
    node_id: NodeId
    state: ProvisionState


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedNode:
    """What was decided of a node's own row; without labels those from its inventory stay as they are."""

    node_id: NodeId
    hardware: Hardware
    no_schedule_reasons: Sequence[str]
    inventory_labels: Mapping[str, str] | None = None


async def register(tx: Transaction, tenant_id: TenantId, hello: Hello, arrival: Arrival) -> NodeId:
    """Find the node with this identity or make it, and give it the session; that it is heard of is noted apart."""
    found = await tx.value(
        _UPSERT,
        arrival.node_id,
        tenant_id,
        hello.identity_key,
        hello.hostname,
        hello.display_name,
        hello.management_address,
        hello.agent_version,
        hello.protocol,
        list(hello.features),
        hello.boot_id,
        arrival.state.value,
        generation_at_join(arrival.state),
    )
    await tx.execute(_SESSION, found, tenant_id, arrival.session_id)
    await tx.execute(_INVENTORY, found, tenant_id)
    return NodeId(found)


async def node_with(tx: Transaction, tenant_id: TenantId, identity_key: str) -> NodeId | None:
    """Return the tenant's node with this identity."""
    found = await tx.value("select id from nodes where tenant_id = $1 and identity_key = $2", tenant_id, identity_key)
    return None if found is None else NodeId(found)


async def save_decided(tx: Transaction, decided: Sequence[DecidedNode]) -> None:
    """Write what was decided of many nodes in one statement, where it changed."""
    if decided:
        await tx.execute(_DECIDED, decided)


async def matching_nodes(
    source: Transaction | Reader, tenant_id: TenantId, query: NodeQuery, node_ids: Sequence[str] | None = None
) -> frozenset[NodeId]:
    """Return which nodes fit the query: of these, or of all."""
    where = query.where() if node_ids is None else (*query.where(), NODES.where("among", node_ids))
    asked = Asked(where)
    compiled = _matching(asked.shape)
    rows = await source.fetch(compiled.text, *compiled.arguments([tenant_id, *asked.values()]))
    return frozenset(NodeId(row.id) for row in rows)


@lru_cache(64)
def _matching(shape: Shape) -> Compiled:
    opened = Draft([shape.asked]).open(NODES, 0, [NODES.table.c.id])
    return compile_statement(opened.select([("id", NODES.table.c.id)]))
