"""Events of the feed."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, cast

import strawberry

from domain.diff import ChangeType
from domain.events import CONDITION_CHANGED, INVENTORY_CHANGED
from resolvers import inventories, reading
from resolvers.events import EventQuery, FeedEvent
from schema.arguments import listed
from schema.compute_node import ComputeNode
from schema.enums import ConditionStatus
from schema.objects import Info
from schema.scalars import Cursor, JsonValue
from schema.snapshot import InventoryChange, Snapshot


@strawberry.interface(name="Event", description="Something that happened, with its place in the feed.")
class Event:
    """What every event has."""

    graph_types: ClassVar[dict[str, str]] = {
        INVENTORY_CHANGED: "NodeInventoryChanged",
        CONDITION_CHANGED: "NodeConditionChanged",
        **{change.value: "NodeHardwareChanged" for change in ChangeType},
    }

    id: strawberry.ID = strawberry.field(description="The event's id.")
    cursor: Cursor = strawberry.field(description="Its place in the feed: `after` of what follows it.")
    type: str = strawberry.field(description="Such as `node.inventory.changed`.")
    at: datetime = strawberry.field(description="When the change was made.")
    node_id: strawberry.ID | None = strawberry.field(description="The node it is about.")

    @strawberry.field(description="The node it is about, as it is now.")
    async def node(self, info: Info) -> ComputeNode | None:
        """Load the node."""
        return cast("ComputeNode | None", await reading.node_or_none(info.context, self.node_id))

    @classmethod
    def is_type_of(cls, value: Any, _info: Any) -> bool:  # noqa: ANN401 - whatever a resolver returned
        """Tell the event's GraphQL type by its type; one of no type of its own is an OtherEvent."""
        return isinstance(value, FeedEvent) and cls.__name__ == Event.graph_types.get(value.type, "OtherEvent")


def _payload(event: Event) -> dict[str, Any]:
    return cast("FeedEvent", event).payload


@strawberry.type(description="A node's inventory was applied.")
class NodeInventoryChanged(Event):
    """`node.inventory.changed`."""

    @strawberry.field(description="The snapshot that was appended.")
    def snapshot_id(self) -> strawberry.ID:
        """Return the id."""
        return strawberry.ID(_payload(self)["snapshotId"])

    @strawberry.field(description="The snapshot that was appended.")
    async def snapshot(self, info: Info) -> Snapshot | None:
        """Load the snapshot."""
        return cast("Snapshot | None", await reading.snapshot_or_none(info.context, _payload(self)["snapshotId"]))

    @strawberry.field(description="Its digest.")
    def digest(self) -> str:
        """Return the digest."""
        return str(_payload(self)["digest"])

    @strawberry.field(description="Names of the sections whose bytes are not those of the set applied before.")
    def sections(self) -> list[str]:
        """Return the names."""
        return list(_payload(self)["sections"])

    @strawberry.field(description="Under a tenant's control: history only.")
    def advisory(self) -> bool:
        """Return the mark."""
        return bool(_payload(self)["advisory"])

    @strawberry.field(description="What changed, in the diff's order.")
    def changes(self) -> list[InventoryChange]:
        """Return the changes."""
        return cast("list[InventoryChange]", inventories.changes_from_json(_payload(self)["changes"]))


@strawberry.type(description="One difference that an inventory brought: a GPU missing or added, a disk replaced, ….")
class NodeHardwareChanged(Event):
    """One event per change, of the change's type."""

    @strawberry.field(description="The snapshot that brought it.")
    def snapshot_id(self) -> strawberry.ID:
        """Return the id."""
        return strawberry.ID(_payload(self)["snapshotId"])

    @strawberry.field(description="The change.")
    def change(self) -> InventoryChange:
        """Return the change."""
        return cast("InventoryChange", inventories.changes_from_json([{**_payload(self), "type": self.type}])[0])


@strawberry.type(description="A condition of a node changed.")
class NodeConditionChanged(Event):
    """`node.condition.changed`."""

    @strawberry.field(description="The condition's type.")
    def condition(self) -> str:
        """Return the type."""
        return str(_payload(self)["condition"])

    @strawberry.field(description="Whether it holds now.")
    def status(self) -> ConditionStatus:
        """Return the status."""
        return ConditionStatus(_payload(self)["status"])

    @strawberry.field(description="Why, in one word.")
    def reason(self) -> str | None:
        """Return the reason."""
        return cast("str | None", _payload(self).get("reason"))

    @strawberry.field(description="Why, for people.")
    def message(self) -> str | None:
        """Return the message."""
        return cast("str | None", _payload(self).get("message"))

    @strawberry.field(description="While it holds, nothing is scheduled on the node.")
    def no_schedule(self) -> bool:
        """Return the policy."""
        return bool(_payload(self)["noSchedule"])


@strawberry.type(description="An event that has no type of its own in this schema.")
class OtherEvent(Event):
    """Whatever a newer server publishes."""

    payload: JsonValue = strawberry.field(description="What it says.")


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
