"""Nodes: hello, and reading them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Select

from db.database import Reader, Row, Transaction
from db.paging import Order
from db.tables import LivenessRow, NodeRow
from db.tables.node import SEARCHED_TEXT
from domain.ids import NodeId, TenantId
from domain.node import LEASE_SECONDS, SETTLED_STATES, Connectivity, NodeState, ProvisionState

nodes: Final = NodeRow.__table__  # type: ignore[attr-defined]  # SQLModel gives table classes this attribute
liveness: Final = LivenessRow.__table__  # type: ignore[attr-defined]

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
_INVENTORY_OF = """
select node_id, reported, reported_at, missing, applied, applied_digest, applied_at, failed, failed_at, error
from node_inventory where tenant_id = $1 and node_id = any ($2)
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


async def inventory_of_nodes(source: Reader, tenant_id: TenantId, node_ids: Sequence[str]) -> dict[str, Row]:
    """Return where many nodes' inventory stands."""
    return {row.node_id: row for row in await source.fetch(_INVENTORY_OF, tenant_id, list(node_ids))}


CONNECTIVITY: Final[ColumnElement[str]] = sa.case(
    (
        liveness.c.last_seen_at > sa.func.now() - sa.literal_column(f"interval '{LEASE_SECONDS} seconds'"),
        Connectivity.CONNECTED.value,
    ),
    else_=Connectivity.DISCONNECTED.value,
)
STATE: Final[ColumnElement[str]] = sa.case(
    (nodes.c.provision_state == ProvisionState.RETIRED.value, NodeState.RETIRED.value),
    (CONNECTIVITY.is_distinct_from(Connectivity.CONNECTED.value), CONNECTIVITY),
    (nodes.c.maintenance, NodeState.MAINTENANCE.value),
    (nodes.c.draining, NodeState.DRAINING.value),
    (nodes.c.cordoned, NodeState.CORDONED.value),
    (nodes.c.provision_state.in_(sorted(SETTLED_STATES)), NodeState.READY.value),
    else_=NodeState.PROVISIONING.value,
)
SELECT_NODES: Final[Select[Any]] = sa.select(
    sa.literal_column("'ComputeNode'").label("typename"),
    *nodes.c,
    liveness.c.last_seen_at,
    CONNECTIVITY.label("connectivity"),
    STATE.label("state"),
    sa.func.coalesce(nodes.c.hostname, "").label("hostname_key"),
).select_from(nodes.outerjoin(liveness, liveness.c.node_id == nodes.c.id))
"""A node with what follows from its liveness."""

BY_ID: Final = Order("id", (nodes.c.id,), ("id",))
BY_HOSTNAME: Final = Order(
    "hostname", (sa.func.coalesce(nodes.c.hostname, "", type_=sa.Text), nodes.c.id), ("hostname_key", "id")
)


@dataclass(frozen=True, slots=True)
class NodeQuery:
    """Which nodes; an empty tuple asks nothing."""

    ids: tuple[str, ...] = ()
    tenant_ids: tuple[str, ...] = ()
    site_ids: tuple[str, ...] = ()
    pool_ids: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    provision_states: tuple[str, ...] = ()
    text: str | None = None

    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Return every list of the query, for its bounds."""
        return (self.ids, self.tenant_ids, self.site_ids, self.pool_ids, self.states, self.provision_states)

    def conditions(self, tenant_id: TenantId) -> list[ColumnElement[bool]]:
        """Return the WHERE conditions, the tenant's first."""
        listed: tuple[tuple[ColumnElement[Any], tuple[str, ...]], ...] = (
            (nodes.c.id, self.ids),
            (nodes.c.tenant_id, self.tenant_ids),
            (nodes.c.site_id, self.site_ids),
            (nodes.c.pool_id, self.pool_ids),
            (STATE, self.states),
            (nodes.c.provision_state, self.provision_states),
        )
        found = [nodes.c.tenant_id == tenant_id]
        found += [column == any_of(values) for column, values in listed if values]
        if self.text:
            pattern = f"%{_escaped(self.text)}%"
            found.append(sa.literal_column(f"({SEARCHED_TEXT})", sa.Text).ilike(pattern, escape="\\"))
        return found


async def matching_nodes(
    source: Transaction, tenant_id: TenantId, query: NodeQuery, node_ids: Sequence[str]
) -> frozenset[str]:
    """Return which of these nodes fit the query."""
    statement = SELECT_NODES.with_only_columns(nodes.c.id, maintain_column_froms=True)
    rows = await source.fetch(statement.where(*query.conditions(tenant_id), nodes.c.id == any_of(node_ids)))
    return frozenset(row.id for row in rows)


def any_of(values: Sequence[str]) -> ColumnElement[Any]:
    """Return what a column is compared with to be one of the values."""
    return sa.func.any(text_array(values))


def text_array(values: Sequence[str]) -> ColumnElement[Any]:
    """Bind values as one text array, so that the statement does not change with their number."""
    return sa.bindparam(None, list(values), type_=sa.ARRAY(sa.Text), unique=True)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
