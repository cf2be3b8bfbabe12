"""Labels that agents and operators give."""

from collections.abc import Sequence
from dataclasses import dataclass

from db import labels as store
from db.labels import ReportedLabels
from db.node_changes import tell_changed
from domain.access import Permission
from domain.driver_labels import Driver, driver_labels
from domain.errors import NotFound
from domain.ids import NodeId, has_prefix
from domain.labels import GivenLabel, given_labels, label_change, relabelled
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One


@dataclass(frozen=True, slots=True)
class LabelsAtHello:
    """What a hello says of labels; None says nothing of them."""

    labels: Sequence[GivenLabel] | None = None
    drivers: Sequence[Driver] | None = None


def reported_labels(said: LabelsAtHello) -> ReportedLabels:
    """Return a hello's labels as they are kept; raises InvalidInput naming the place."""
    return ReportedLabels(
        agent=None if said.labels is None else given_labels("labels", said.labels),
        drivers=None if said.drivers is None else driver_labels(said.drivers),
    )


async def label_node(context: Context, node_id: str, put: Sequence[GivenLabel], remove: Sequence[str]) -> One:
    """Change the operator's labels of a node; raises InvalidInput, NotFound, or Conflict when there are too many."""
    tenant_id = context.require(Permission.OPERATE)
    change = label_change(put, remove)
    if not has_prefix(node_id, "node"):
        raise _no_node(node_id)
    async with context.transaction() as tx:
        current = await store.operator_labels(tx, tenant_id, NodeId(node_id))
        if current is None:
            raise _no_node(node_id)
        wanted = relabelled(current, change)
        if wanted != current:
            await store.save_operator_labels(tx, NodeId(node_id), wanted)
            await tell_changed(tx, [(tenant_id, NodeId(node_id))], ["labels"])
    return reading.node(context, node_id)


def _no_node(node_id: str) -> NotFound:
    return NotFound(f"no node {node_id[:64]!r}")
