"""Whether work may be placed on a node, and why not (rule 8)."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import array

from db.tables import NodeRow, table_of
from db.views.view import Expression
from domain.node import PLACEABLE_STATES, Connectivity, NodeRole, Trust

_nodes: Final = table_of(NodeRow)
_TEXTS: Final = sa.ARRAY(sa.Text)


def _text(text: str) -> Expression:
    return sa.literal_column(f"'{text}'", sa.Text)


def _unless(holds: Expression, reason: Expression) -> Expression:
    return sa.case((sa.not_(holds), reason))


def unschedulable_reasons(connectivity: Expression) -> Expression:
    """Return what keeps work off a node, its own axes first and then the conditions; nothing when it is schedulable."""
    nodes = _nodes.c
    placeable = nodes.provision_state.in_([_text(state) for state in sorted(PLACEABLE_STATES)])
    # A machine that its tenant owns takes the tenant's work once it is in one of the tenant's pools.
    trusted = (nodes.trust == _text(Trust.PLATFORM)) | (
        (nodes.trust == _text(Trust.TENANT_OWNED)) & nodes.pool_id.is_not(None)
    )
    own: Expression = array(
        [
            _unless(placeable, _text("provisionState=").concat(nodes.provision_state)),
            _unless(nodes.role == _text(NodeRole.HOST), _text("role=").concat(nodes.role)),
            sa.case((nodes.maintenance, _text("maintenance"))),
            sa.case((nodes.cordoned, _text("cordoned"))),
            sa.case((nodes.draining, _text("draining"))),
            _unless(connectivity == _text(Connectivity.CONNECTED), _text("connectivity=").concat(connectivity)),
            _unless(
                nodes.observed_generation >= sa.literal_column("1", sa.Integer),
                _text("observedGeneration=").concat(sa.cast(nodes.observed_generation, sa.Text)),
            ),
            _unless(trusted, _text("trust=").concat(nodes.trust)),
        ],
        type_=sa.Text,
    )
    present = sa.func.array_remove(own, sa.null(), type_=_TEXTS)
    return sa.func.array_cat(present, nodes.no_schedule_reasons, type_=_TEXTS)
