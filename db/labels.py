"""Labels of nodes by their source; the database keeps the effective ones computed."""

from collections.abc import Mapping
from dataclasses import dataclass

from db.database import Transaction
from domain.driver_labels import DRIVER_PREFIXES
from domain.ids import NodeId, TenantId
from domain.node import Trust

Labels = Mapping[str, str]

# Nothing that the tenant's own machine says of itself is taken for the platform's view (rule 9).
_REPORTED = """
update nodes n set agent_labels = said.agent, system_labels = said.system
from (
    select id, coalesce($2::jsonb, agent_labels) as agent,
        case when $3::jsonb is null then system_labels
        else coalesce((
            select jsonb_object_agg(l.key, l.value) from jsonb_each(system_labels) l
            where not exists (select from unnest($4::text[]) p (prefix) where starts_with(l.key, p.prefix))
        ), '{}') || $3 end as system
    from nodes where id = $1 and trust <> $5
) said
where n.id = said.id and (n.agent_labels, n.system_labels) is distinct from (said.agent, said.system)
returning n.id
"""
_OPERATORS = "select operator_labels from nodes where tenant_id = $1 and id = $2 for update"
_SAVE_OPERATORS = "update nodes set operator_labels = $2 where id = $1"


@dataclass(frozen=True, slots=True)
class ReportedLabels:
    """What a hello says of labels; None leaves them as they are."""

    agent: Labels | None = None
    drivers: Labels | None = None


async def save_reported_labels(tx: Transaction, node_id: NodeId, said: ReportedLabels) -> bool:
    """Replace what the node's agent says, in one statement; False when nothing changed and nothing was written."""
    if said == ReportedLabels():
        return False
    drivers = None if said.drivers is None else dict(said.drivers)
    agent = None if said.agent is None else dict(said.agent)
    prefixes, unheard = list(DRIVER_PREFIXES), Trust.TENANT_CONTROLLED.value
    return await tx.value(_REPORTED, node_id, agent, drivers, prefixes, unheard) is not None


async def operator_labels(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> dict[str, str] | None:
    """Lock the node and return its operator's labels; None when the tenant has no such node."""
    found = await tx.first(_OPERATORS, tenant_id, node_id)
    return None if found is None else dict(found.operator_labels)


async def save_operator_labels(tx: Transaction, node_id: NodeId, labels: Labels) -> None:
    """Replace the operator's labels of a node."""
    await tx.execute(_SAVE_OPERATORS, node_id, dict(labels))
