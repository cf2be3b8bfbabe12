"""Events of the feed."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, cast

import strawberry

from db.tables import EventRow
from resolvers.events import EventQuery
from resolvers.feed import FeedEvent
from schema.arguments import listed
from schema.command import Command
from schema.compute_node import ComputeNode
from schema.device import Device
from schema.enums import (
    CommandState,
    ConditionStatus,
    FaultKind,
    HealthEnd,
    HealthSource,
    Scope,
    XidPolicy,
    XidRemedy,
)
from schema.filters import flat
from schema.remediation import RemediationRun
from schema.scalars import Cursor, JsonValue
from schema.site import Pool
from schema.snapshot import InventoryChange, Snapshot


@strawberry.interface(name="Event", description="Something that happened, with its place in the feed.")
class Event:
    """What every event has; its rows say which type it is of."""

    row: ClassVar = EventRow

    id: strawberry.ID = strawberry.field(description="The event's id.")
    cursor: Cursor = strawberry.field(description="Its place in the feed: `after` of what follows it.")
    type: str = strawberry.field(description="Such as `node.inventory.changed`.")
    at: datetime = strawberry.field(description="When the change was made.")
    node_id: strawberry.ID | None = strawberry.field(description="The node it is about.")
    node: ComputeNode | None = strawberry.field(description="The node it is about, as it is now.")

    @classmethod
    def is_type_of(cls, value: Any, _info: Any) -> bool:  # noqa: ANN401 - whatever a resolver returned
        """Tell the event's GraphQL type by its row."""
        row = value.row if isinstance(value, FeedEvent) else value
        return bool(getattr(row, "typename", None) == cls.__name__)


@strawberry.type(description="Fields of a node changed of which no other event tells.")
class NodeChanged(Event):
    """`node.changed`."""

    changed: list[str] = strawberry.field(description="Their names in this schema, such as `labels` or `connectivity`.")


@strawberry.type(description="A node's inventory was applied.")
class NodeInventoryChanged(Event):
    """`node.inventory.changed`."""

    snapshot_id: strawberry.ID = strawberry.field(description="The snapshot that was appended.")
    snapshot: Snapshot | None = strawberry.field(description="The snapshot that was appended.")
    digest: str = strawberry.field(description="Its digest.")
    sections: list[str] = strawberry.field(
        description="Names of the sections whose bytes are not those of the set applied before."
    )
    advisory: bool = strawberry.field(description="Under a tenant's control: history only.")
    changes: list[InventoryChange] = strawberry.field(description="What changed, in the diff's order.")


@strawberry.type(description="One difference that an inventory brought: a GPU missing or added, a disk replaced, ….")
class NodeHardwareChanged(Event):
    """One event per change, of the change's type."""

    snapshot_id: strawberry.ID = strawberry.field(description="The snapshot that brought it.")

    @strawberry.field(description="The change.")
    def change(self) -> InventoryChange:
        """Return the payload, whose type is the event's."""
        event = cast("Any", self)
        row = event.row if isinstance(event, FeedEvent) else event
        return cast("InventoryChange", {**row.payload, "type": row.type})


@strawberry.type(description="A condition of a node changed.")
class NodeConditionChanged(Event):
    """`node.condition.changed`."""

    condition: str = strawberry.field(description="The condition's type.")
    status: ConditionStatus = strawberry.field(description="Whether it holds now.")
    reason: str | None = strawberry.field(description="Why, in one word.")
    message: str | None = strawberry.field(description="Why, for people.")
    no_schedule: bool = strawberry.field(description="While it holds, nothing is scheduled on the node.")


@strawberry.type(description="A fault of a device was raised, told anew or is over.")
class DeviceHealthChanged(Event):
    """`device.health.changed`."""

    device_id: strawberry.ID = strawberry.field(description="The device with the fault.")
    device: Device | None = strawberry.field(description="The device, as it is now.")
    healthy: bool = strawberry.field(description="Whether the device is healthy with that.")
    source: HealthSource = strawberry.field(description="Who says so.")
    cause: str = strawberry.field(description="What was found, in one word.")
    # Nullable, because one document may ask for it and for a condition's reason.
    reason: str | None = strawberry.field(
        description="The type of condition that it amounts to; an operator's own words."
    )
    message: str | None = strawberry.field(description="What was found, for people.")
    rule: str | None = strawberry.field(description="Id and version of the rules that say so.")
    end: HealthEnd | None = strawberry.field(description="Why it is over; null while it is not.")


@strawberry.type(description="A kernel log told a fault that is news: the first of its kind in its boot, or one back.")
class NodeFaultRecorded(Event):
    """`node.fault.recorded`."""

    fault_kind: FaultKind = strawberry.field(description="Which of the driver's lines told of it.")
    code: int = strawberry.field(description="The number of the Xid or SXid.")
    # Not `deviceId`, which other events always have: one document may ask several types of event for it.
    gpu_id: strawberry.ID | None = strawberry.field(description="The GPU; null where nobody knows which.")
    pci: str | None = strawberry.field(description="Its PCI address.")
    mig: str | None = strawberry.field(description="The MIG instance, such as `gi5/ci0`.")
    boot_id: str | None = strawberry.field(description="The boot that it is of.")
    policy: XidPolicy = strawberry.field(description="What it does to placement.")
    scope: Scope = strawberry.field(description="What it touches.")
    rule: str | None = strawberry.field(description="Id and version of the rule that says so.")
    cause: str = strawberry.field(description="The fault by its code, such as `Xid79`.")
    caused_by: str | None = strawberry.field(description="The fault that it is a consequence of.")
    meaning: str = strawberry.field(description="What the code means.")
    message: str | None = strawberry.field(description="The driver's words.")


@strawberry.type(description="A command of a node was issued, or came a step on.")
class NodeCommandChanged(Event):
    """`node.command.changed`."""

    command_id: strawberry.ID = strawberry.field(description="The command.")
    command: Command | None = strawberry.field(description="The command, as it is now.")
    kind: str = strawberry.field(description="Its kind, such as inventory.refresh.")
    sequence: int = strawberry.field(description="Its number among the node's commands.")
    state: CommandState = strawberry.field(description="Where it was on its way with that.")
    reason: str | None = strawberry.field(description="Why it ended like that, in one word.")
    message: str | None = strawberry.field(description="Why, for people.")
    by: str | None = strawberry.field(
        description="Who took the step: the name of a token; null when it was time alone."
    )


@strawberry.type(description="What keeps work off a node by an operator's word changed, or it is drained.")
class NodeAxisChanged(Event):
    """`node.cordoned`, `.uncordoned`, `.draining`, `.drained` and `node.maintenance.changed`."""

    cordoned: bool = strawberry.field(description="It takes no new work.")
    draining: bool = strawberry.field(description="It is being emptied.")
    drained: bool = strawberry.field(description="It is being emptied, and nothing was held of it any more.")
    maintenance: bool = strawberry.field(description="It is in maintenance.")
    reason: str | None = strawberry.field(description="Why, as it was given.")
    by: str | None = strawberry.field(
        description="Who did it: the name of a token; null for what came about by itself."
    )


@strawberry.type(description="A run of remediation began, helped, or left its node to an operator.")
class NodeRemediationChanged(Event):
    """`node.remediation.started`, `.succeeded` and `.escalated`."""

    run_id: strawberry.ID = strawberry.field(description="The run.")
    run: RemediationRun | None = strawberry.field(description="The run, as it is now.")
    remedy: XidRemedy = strawberry.field(description="What is done.")
    causes: list[str] = strawberry.field(description="For which conditions, such as `Xid79`.")
    attempt: int = strawberry.field(description="From 1, how many runs there were for the same fault within a day.")
    reason: str | None = strawberry.field(description="Why, in one word.")


@strawberry.type(description="A pool is left alone by remediation, or no longer.")
class PoolRemediationChanged(Event):
    """`pool.remediation.paused` and `.resumed`."""

    pool_id: strawberry.ID = strawberry.field(description="The pool.")
    pool: Pool | None = strawberry.field(description="The pool, as it is now.")
    nodes: int = strawberry.field(description="How many nodes it had.")
    turned_unhealthy: int = strawberry.field(description="How many of them had turned unhealthy within ten minutes.")


@strawberry.type(description="An event that has no type of its own in this schema.")
class OtherEvent(Event):
    """Whatever a newer server publishes."""

    payload: JsonValue = strawberry.field(description="What it says.")


@flat
@strawberry.input(description="Which events; what is left out asks nothing.")
class EventFilter:
    """A filter of the feed."""

    type: list[str] | None = strawberry.field(default=None, description="Of any of these types.")
    node_id: list[strawberry.ID] | None = strawberry.field(default=None, description="About any of these nodes.")


def event_query(given: EventFilter | None) -> EventQuery:
    """Return a filter as the use case takes it."""
    if given is None:
        return EventQuery()
    return EventQuery(
        types=frozenset(listed("filter.type", given.type)), node_ids=frozenset(listed("filter.nodeId", given.node_id))
    )


NodeIds = Annotated[
    list[strawberry.ID] | None, strawberry.argument(description="Only events about any of these nodes.")
]
