"""Nodes as they are read: with their liveness, and with what belongs to them."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import JSONB

from db import selectors
from db.declared.acceptance import NEWEST_FIRST as NEWEST_ATTEMPT_FIRST
from db.declared.acceptance import attempts
from db.declared.allocations import allocations_of
from db.declared.commands import commands
from db.declared.faults import NEWEST_FIRST as FAULTS_NEWEST_FIRST
from db.declared.faults import faults
from db.declared.images import has_image, may_have_weights
from db.declared.labels import LABELS_OF_NODE
from db.declared.placement import unschedulable_reasons
from db.declared.remediation import runs
from db.declared.snapshots import AS_OF, NEWEST_FIRST, snapshots
from db.paging import Order
from db.tables import (
    AcceptanceRow,
    CertificateRow,
    CommandRow,
    ConditionRow,
    DeviceRow,
    LivenessRow,
    NodeFaultRow,
    NodeInventoryRow,
    NodeRow,
    PoolRow,
    RemediationRunRow,
    SiteRow,
    SnapshotRow,
    table_of,
)
from db.views.filters import TEXTS, one_of
from db.views.view import Expression, Filter, Joined, Relation, View, Where, declare
from domain.node import LEASE_SECONDS, SETTLED_STATES, Connectivity, NodeState, ProvisionState
from domain.selector import Requirement

nodes: Final = table_of(NodeRow)
_liveness: Final = table_of(LivenessRow)
_certificates: Final = table_of(CertificateRow)
_conditions: Final = table_of(ConditionRow)
_devices: Final = table_of(DeviceRow)
_inventory: Final = table_of(NodeInventoryRow)
_pools: Final = table_of(PoolRow)
_sites: Final = table_of(SiteRow)


def _constant(text: str) -> Expression:
    return sa.literal_column(f"'{text}'", sa.Text)


def _is(column: Expression, *values: str) -> ColumnElement[bool]:
    return column.in_([_constant(value) for value in values])


CONNECTIVITY: Final[Expression] = sa.case(
    (
        _liveness.c.last_seen_at > sa.func.now() - sa.literal_column(f"interval '{LEASE_SECONDS} seconds'"),
        _constant(Connectivity.CONNECTED),
    ),
    # What a longer silence is, the reconciler says: it knows whether anybody listened.
    else_=sa.func.coalesce(_liveness.c.away, _constant(Connectivity.DISCONNECTED), type_=sa.Text),
)
STATE: Final[Expression] = sa.case(
    (_is(nodes.c.provision_state, ProvisionState.RETIRED), _constant(NodeState.RETIRED)),
    (_constant(Connectivity.CONNECTED) != CONNECTIVITY, CONNECTIVITY),
    (nodes.c.maintenance, _constant(NodeState.MAINTENANCE)),
    (nodes.c.draining, _constant(NodeState.DRAINING)),
    (nodes.c.cordoned, _constant(NodeState.CORDONED)),
    (_is(nodes.c.provision_state, *sorted(SETTLED_STATES)), _constant(NodeState.READY)),
    else_=_constant(NodeState.PROVISIONING),
)

_REASONS: Final = unschedulable_reasons(CONNECTIVITY)
_HARDWARE_KEY: Final[Expression] = sa.case(
    (
        nodes.c.hardware_key.is_not(None),
        sa.func.jsonb_build_object(
            _constant("key"),
            nodes.c.hardware_key,
            _constant("trusted"),
            nodes.c.hardware_key_trusted,
            _constant("evidence"),
            nodes.c.hardware_evidence,
            type_=JSONB,
        ),
    )
)

BY_ID: Final = Order("id", (nodes.c.id,))
BY_HOSTNAME: Final = Order("hostname", (sa.func.coalesce(nodes.c.hostname, _constant(""), type_=sa.Text), nodes.c.id))


def _contains(text: str) -> tuple[str]:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return (f"%{escaped}%",)


def _searched(pattern: Expression) -> ColumnElement[bool]:
    # The index is on this very text. The columns are named so that aliases can take their place.
    found: Expression = sa.func.coalesce(nodes.c.hostname, _constant(""), type_=sa.Text)
    for more in (sa.func.coalesce(nodes.c.display_name, _constant(""), type_=sa.Text), nodes.c.identity_key):
        found = found.concat(_constant(" ")).concat(more)
    return found.ilike(pattern, escape="\\")


CERTIFICATES: Final = declare(
    CertificateRow,
    View("Certificate", _certificates, key=_certificates.c.node_id, tenant=_certificates.c.tenant_id),
)
NODES: Final = declare(
    NodeRow,
    View(
        "ComputeNode",
        nodes,
        key=nodes.c.id,
        tenant=nodes.c.tenant_id,
        joins=(Joined(_liveness, _liveness.c.node_id == nodes.c.id),),
        expressions={
            "last_seen_at": _liveness.c.last_seen_at,
            "clock_skew_seconds": _liveness.c.clock_skew_seconds,
            "connectivity": CONNECTIVITY,
            "state": STATE,
            "schedulable": sa.func.cardinality(_REASONS) == sa.literal_column("0", sa.Integer),
            "unschedulable_reasons": _REASONS,
        },
        documents={"hardware_key": _HARDWARE_KEY, "units": nodes.c.units},
        relations={
            "site": Relation(SiteRow, ((_sites.c.id, nodes.c.site_id),)),
            "pool": Relation(PoolRow, ((_pools.c.id, nodes.c.pool_id),)),
            "labels": LABELS_OF_NODE,
            "conditions": Relation(
                ConditionRow,
                ((_conditions.c.node_id, nodes.c.id),),
                many=True,
                order=Order("type", (_conditions.c.type,)),
                size=8,
            ),
            "faults": Relation(
                NodeFaultRow, ((faults.c.node_id, nodes.c.id),), many=True, order=FAULTS_NEWEST_FIRST, size=8
            ),
            "devices": Relation(DeviceRow, ((_devices.c.node_id, nodes.c.id),), paged=True),
            "snapshots": Relation(SnapshotRow, ((snapshots.c.node_id, nodes.c.id),), paged=True),
            "latest_snapshot": Relation(
                SnapshotRow,
                ((snapshots.c.node_id, nodes.c.id),),
                order=NEWEST_FIRST,
                first_only=True,
            ),
            "snapshot_at": Relation(
                SnapshotRow,
                ((snapshots.c.node_id, nodes.c.id),),
                order=AS_OF,
                first_only=True,
            ),
            "allocations": allocations_of(nodes.c.id),
            "commands": Relation(CommandRow, ((commands.c.node_id, nodes.c.id),), paged=True),
            "certificate": Relation(CertificateRow, ((_certificates.c.node_id, nodes.c.id),)),
            "acceptance": Relation(
                AcceptanceRow,
                ((attempts.c.node_id, nodes.c.id),),
                order=NEWEST_ATTEMPT_FIRST,
                first_only=True,
            ),
            "remediation_runs": Relation(RemediationRunRow, ((runs.c.node_id, nodes.c.id),), paged=True),
            "inventory_status": Relation(NodeInventoryRow, ((_inventory.c.node_id, nodes.c.id),)),
        },
        filters={
            "id": one_of(nodes.c.id),
            "among": one_of(nodes.c.id),
            "tenant_id": one_of(nodes.c.tenant_id),
            "site_id": one_of(nodes.c.site_id),
            "pool_id": one_of(nodes.c.pool_id),
            "state": one_of(STATE),
            "provision_state": one_of(nodes.c.provision_state),
            "image": Filter(has_image, (TEXTS,), lambda names: (tuple(names),), skewed=True),
            "weights": Filter(may_have_weights),
            "text": Filter(_searched, (sa.Text(),), _contains, skewed=True),
        },
    ),
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
    selector: tuple[Requirement, ...] = ()
    images: tuple[str, ...] = ()
    weights: str | None = None

    def lists(self) -> tuple[tuple[str, ...], ...]:
        """Return every list of the query, for its bounds."""
        listed = (self.ids, self.tenant_ids, self.site_ids, self.pool_ids, self.states, self.provision_states)
        return (*listed, self.images, (self.weights,) if self.weights else ())

    def where(self) -> tuple[Where, ...]:
        """Return the query as conditions."""
        given = {
            "id": self.ids,
            "tenant_id": self.tenant_ids,
            "site_id": self.site_ids,
            "pool_id": self.pool_ids,
            "state": self.states,
            "provision_state": self.provision_states,
            "image": self.images,
            "weights": self.weights,
            "text": self.text,
        }
        found = [NODES.where(name, value) for name, value in given.items() if value]
        return (*found, *(_selected(requirement) for requirement in self.selector))


def _selected(requirement: Requirement) -> Where:
    operator = requirement.operator
    clause = partial(selectors.clause, nodes.c.labels, operator)
    return Where(("selector", operator), clause, selectors.types(operator), selectors.values(requirement), skewed=True)
