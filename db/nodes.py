"""Nodes: hello, and which of some fit a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from db.database import Transaction
from db.declared.nodes import NODES, NodeQuery
from db.views.draft import Draft
from db.views.plan import Compiled, compile_statement
from db.views.selection import Asked, Shape
from domain.ids import NodeId, TenantId
from domain.node import ProvisionState

_UPSERT = """
insert into nodes (
    id, tenant_id, identity_key, hostname, display_name, management_address, agent_version, protocol, features,
    boot_id, provision_state, role
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'host')
on conflict (tenant_id, identity_key) do update set
    hostname = coalesce(excluded.hostname, nodes.hostname),
    display_name = coalesce(excluded.display_name, nodes.display_name),
    management_address = coalesce(excluded.management_address, nodes.management_address),
    agent_version = excluded.agent_version,
    protocol = excluded.protocol,
    features = excluded.features,
    boot_id = coalesce(excluded.boot_id, nodes.boot_id)
returning id
"""
_SESSION = """
insert into node_liveness (node_id, tenant_id, session_id, last_seen_at) values ($1, $2, $3, now())
on conflict (node_id) do update set session_id = excluded.session_id, last_seen_at = excluded.last_seen_at
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


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a hello is given: its session, and the id and state of the node if this is its first."""

    session_id: str
    node_id: NodeId
    state: ProvisionState


async def register(tx: Transaction, tenant_id: TenantId, hello: Hello, arrival: Arrival) -> NodeId:
    """Find the node with this identity or make it, and give it the session."""
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
    )
    await tx.execute(_SESSION, found, tenant_id, arrival.session_id)
    await tx.execute(_INVENTORY, found, tenant_id)
    return NodeId(found)


async def matching_nodes(
    source: Transaction, tenant_id: TenantId, query: NodeQuery, node_ids: Sequence[str]
) -> frozenset[str]:
    """Return which of these nodes fit the query."""
    asked = Asked((*query.where(), NODES.where("among", node_ids)))
    compiled = _matching(asked.shape)
    rows = await source.fetch(compiled.text, *compiled.arguments([tenant_id, *asked.values()]))
    return frozenset(row.id for row in rows)


@lru_cache(64)
def _matching(shape: Shape) -> Compiled:
    opened = Draft([shape.asked]).open(NODES, 0, [NODES.table.c.id])
    return compile_statement(opened.select([("id", NODES.table.c.id)]))
