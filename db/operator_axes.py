"""What operators keep work off nodes by, written together with the events that tell it."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.connections import Row
from db.database import Transaction
from db.events import NewEvent, write_events
from domain.events import PlannedEvent
from domain.ids import NodeId, TenantId
from domain.operator_axes import Maintenance, OperatorAxes

_COLUMNS = """
n.id as node_id, n.tenant_id, n.cordoned, n.draining, n.drained,
n.maintenance, n.maintenance_reason, n.maintenance_by, n.maintenance_since
"""
_LOCK = f"select {_COLUMNS} from nodes n where n.tenant_id = $1 and n.id = $2 for no key update of n"  # noqa: S608
# What is reserved for later holds nothing yet. Who claims of a node locks it first, and finds it draining.
_DRAINING = f"""
select {_COLUMNS}, h.is_held
from nodes n cross join lateral (
    select exists (
        select from allocations a
        where a.node_id = n.id and a.during @> now()
            and coalesce(upper(a.during), 'infinity'::timestamptz) > now()
    ) as is_held
) h
where n.draining and n.drained = h.is_held order by n.id limit $1 for no key update of n skip locked
"""  # noqa: S608
_SAVE = """
update nodes n set cordoned = s.cordoned, draining = s.draining, drained = s.drained, maintenance = s.maintenance,
    maintenance_reason = s.maintenance_reason, maintenance_by = s.maintenance_by,
    maintenance_since = s.maintenance_since
from jsonb_to_recordset($1) s (
    node_id text, cordoned bool, draining bool, drained bool, maintenance bool,
    maintenance_reason text, maintenance_by text, maintenance_since timestamptz
)
where n.id = s.node_id
"""


@dataclass(frozen=True, slots=True)
class AxesChange:
    """A node's axes as they are to be, and the events that tell it."""

    tenant_id: TenantId
    node_id: NodeId
    axes: OperatorAxes
    events: tuple[PlannedEvent, ...]


def axes_of(row: Row) -> OperatorAxes:
    """Return a row as the domain sees it."""
    maintenance = Maintenance(row.maintenance_reason, row.maintenance_by, row.maintenance_since)
    return OperatorAxes(row.cordoned, row.draining, row.drained, maintenance if row.maintenance else None)


async def lock_axes(tx: Transaction, tenant_id: TenantId, node_id: NodeId) -> OperatorAxes | None:
    """Return a node's axes, and let nobody else change them before the end; None without such a node."""
    row = await tx.first(_LOCK, tenant_id, node_id)
    return None if row is None else axes_of(row)


async def lock_draining(tx: Transaction, limit: int) -> list[Row]:
    """Return draining nodes, of whatever tenant, that are emptier or fuller than they are said to be (`is_held`).

    They are held until the end, without those that somebody else has.
    """
    return await tx.fetch(_DRAINING, limit)


async def save_axes(tx: Transaction, changes: Sequence[AxesChange]) -> None:
    """Write changed axes and their events."""
    if not changes:
        return
    await tx.execute(_SAVE, [_columns(change) for change in changes])
    told = [(change, event) for change in changes for event in change.events]
    events = [NewEvent(change.tenant_id, change.node_id, event.type, event.payload) for change, event in told]
    await write_events(tx, events)


def _columns(change: AxesChange) -> dict[str, object]:
    axes, maintenance = change.axes, change.axes.maintenance
    return {
        "node_id": change.node_id,
        "cordoned": axes.cordoned,
        "draining": axes.draining,
        "drained": axes.drained,
        "maintenance": maintenance is not None,
        "maintenance_reason": maintenance and maintenance.reason,
        "maintenance_by": maintenance and maintenance.by,
        "maintenance_since": maintenance and maintenance.since,
    }
