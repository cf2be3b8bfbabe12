"""Events as they are read: each of the type that its own type says, most of them in the payload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import JSONB

from db.paging import Order
from db.tables import (
    CommandRow,
    DeviceRow,
    EventRow,
    NodeRow,
    PoolRow,
    RemediationRunRow,
    SnapshotRow,
    table_of,
)
from db.views.filters import one_of
from db.views.view import Expression, Filter, Key, Relation, View, declare
from domain.diff import ChangeType
from domain.events import (
    COMMAND_CHANGED,
    CONDITION_CHANGED,
    DEVICE_HEALTH_CHANGED,
    FAULT_RECORDED,
    INVENTORY_CHANGED,
    NODE_CHANGED,
    POOL_REMEDIATION,
    REMEDIATION,
    AxisChange,
)

log: Final = table_of(EventRow)
_nodes: Final = table_of(NodeRow)
_snapshots: Final = table_of(SnapshotRow)
_devices: Final = table_of(DeviceRow)
_commands: Final = table_of(CommandRow)
_runs: Final = table_of(RemediationRunRow)
_pools: Final = table_of(PoolRow)


@dataclass(frozen=True, slots=True, eq=False)
class _LogOrder(Order):
    """The log's own order, in which nothing lies behind a position that the log does not follow."""

    def after(self, key: Sequence[ColumnElement[Any]]) -> ColumnElement[bool]:
        return log.c.position > once_followed(key[0], key[0])


def once_followed(place: Expression, bound: Expression) -> Expression:
    """Return a bound of positions to read behind a place, which is refused unless the log follows it.

    Known when it runs: a plan that passes over all partitions would not ask what refuses the place.
    """
    return sa.select(sa.case((_follows(place), bound))).scalar_subquery()


def _follows(place: Expression) -> ColumnElement[bool]:
    return sa.func.log_follows(place, type_=sa.Boolean())


BY_POSITION: Final = _LogOrder("position", (log.c.position,), numbers=True)

GRAPH_TYPES: Final = {
    NODE_CHANGED: "NodeChanged",
    INVENTORY_CHANGED: "NodeInventoryChanged",
    CONDITION_CHANGED: "NodeConditionChanged",
    DEVICE_HEALTH_CHANGED: "DeviceHealthChanged",
    COMMAND_CHANGED: "NodeCommandChanged",
    FAULT_RECORDED: "NodeFaultRecorded",
    **dict.fromkeys(REMEDIATION, "NodeRemediationChanged"),
    **dict.fromkeys(POOL_REMEDIATION, "PoolRemediationChanged"),
    **{change.value: "NodeHardwareChanged" for change in ChangeType},
    **{change.value: "NodeAxisChanged" for change in AxisChange},
}
OTHER: Final = "OtherEvent"


def _text(value: str) -> Expression:
    return sa.literal_column(f"'{value}'", sa.Text)


def told(key: str) -> Expression:
    """Return what a payload says of a key, as text."""
    return log.c.payload.op("->>", return_type=sa.Text())(_text(key))


def _unseen(snapshot: Expression) -> ColumnElement[bool]:
    """Keep what the snapshot of a cursor had not seen (`domain.feed`)."""
    transaction = sa.cast(sa.cast(log.c.transaction, sa.Text), _Xid8())
    return sa.not_(sa.func.pg_visible_in_snapshot(transaction, sa.cast(snapshot, _PgSnapshot())))


class _Xid8(sa.types.UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


class _PgSnapshot(sa.types.UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "pg_snapshot"


VARIANT: Final[Expression] = sa.case(
    {_text(type_): _text(name) for type_, name in GRAPH_TYPES.items()}, value=log.c.type, else_=_text(OTHER)
)

EVENTS: Final = declare(
    EventRow,
    View(
        "Event",
        log,
        key=log.c.position,
        tenant=log.c.tenant_id,
        keys={
            "changed": Key("payload", "changed"),
            "snapshot_id": Key("payload", "snapshotId"),
            "digest": Key("payload", "digest"),
            "sections": Key("payload", "sections"),
            "advisory": Key("payload", "advisory"),
            "changes": Key("payload", "changes"),
            "condition": Key("payload", "condition"),
            "status": Key("payload", "status"),
            "reason": Key("payload", "reason"),
            "message": Key("payload", "message"),
            "no_schedule": Key("payload", "noSchedule"),
            "device_id": Key("payload", "deviceId"),
            "healthy": Key("payload", "healthy"),
            "source": Key("payload", "source"),
            "cause": Key("payload", "cause"),
            "rule": Key("payload", "rule"),
            "end": Key("payload", "end"),
            "command_id": Key("payload", "commandId"),
            "kind": Key("payload", "kind"),
            "sequence": Key("payload", "sequence"),
            "state": Key("payload", "state"),
            "by": Key("payload", "by"),
            "fault_kind": Key("payload", "kind"),
            "code": Key("payload", "code"),
            "gpu_id": Key("payload", "deviceId"),
            "pci": Key("payload", "pci"),
            "mig": Key("payload", "mig"),
            "boot_id": Key("payload", "bootId"),
            "policy": Key("payload", "policy"),
            "scope": Key("payload", "scope"),
            "caused_by": Key("payload", "causedBy"),
            "meaning": Key("payload", "meaning"),
            "cordoned": Key("payload", "cordoned"),
            "draining": Key("payload", "draining"),
            "drained": Key("payload", "drained"),
            "maintenance": Key("payload", "maintenance"),
            "run_id": Key("payload", "runId"),
            "remedy": Key("payload", "remedy"),
            "causes": Key("payload", "causes"),
            "attempt": Key("payload", "attempt"),
            "pool_id": Key("payload", "poolId"),
            "nodes": Key("payload", "nodes"),
            "turned_unhealthy": Key("payload", "turnedUnhealthy"),
        },
        documents={
            "change": log.c.payload.concat(
                sa.func.jsonb_build_object(_text("type"), log.c.type, type_=JSONB),
            )
        },
        relations={
            "node": Relation(NodeRow, ((_nodes.c.id, log.c.node_id),)),
            "snapshot": Relation(SnapshotRow, ((_snapshots.c.id, told("snapshotId")),)),
            "device": Relation(DeviceRow, ((_devices.c.id, told("deviceId")),)),
            "command": Relation(CommandRow, ((_commands.c.id, told("commandId")),)),
            "run": Relation(RemediationRunRow, ((_runs.c.id, told("runId")),)),
            "pool": Relation(PoolRow, ((_pools.c.id, told("poolId")),)),
        },
        filters={
            "type": one_of(log.c.type),
            "node_id": one_of(log.c.node_id),
            "unseen": Filter(_unseen),
            "behind": Filter(_follows, (sa.BigInteger(),)),
        },
        variant=VARIANT,
        feed=BY_POSITION,
    ),
    {*GRAPH_TYPES.values(), OTHER},
)
