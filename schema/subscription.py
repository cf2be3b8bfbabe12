"""The root of subscriptions."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, cast

import strawberry

from domain.events import CONDITION_CHANGED, DEVICE_HEALTH_CHANGED, INVENTORY_CHANGED
from resolvers import commands as command_cases
from resolvers import events as cases
from resolvers.events import EventQuery
from resolvers.node_changes import follow_nodes
from schema.arguments import FeedAfter, listed
from schema.command import Command, NodeId
from schema.compute_node import NodeFilter, node_query
from schema.event import (
    DeviceHealthChanged,
    Event,
    EventFilter,
    NodeConditionChanged,
    NodeIds,
    NodeInventoryChanged,
    event_query,
)
from schema.node_change import NodeChange
from schema.objects import Info

AboutNodes = Annotated[NodeFilter | None, strawberry.argument(description="Only events about nodes that fit now.")]


@strawberry.type(description="What can be followed. With `after`, every event comes once, in order, over reconnects.")
class Subscription:
    """Root fields; each asks for permission first."""

    @strawberry.subscription(description="Inventories that were applied.")
    async def node_inventory_changed(
        self,
        info: Info,
        node_ids: NodeIds = None,
        filter: AboutNodes = None,  # noqa: A002 - the contract's name
        after: FeedAfter = None,
    ) -> AsyncIterator[NodeInventoryChanged]:
        """Follow `node.inventory.changed`."""
        query = EventQuery(
            types=frozenset({INVENTORY_CHANGED}),
            node_ids=frozenset(listed("nodeIds", node_ids)),
            nodes=node_query(filter),
        )
        async for event in cases.subscribe(info.context, query, after):
            yield cast("NodeInventoryChanged", event)

    @strawberry.subscription(description="Conditions of nodes that changed.")
    async def node_condition_changed(
        self,
        info: Info,
        node_ids: NodeIds = None,
        types: Annotated[
            list[str] | None, strawberry.argument(description="Only conditions of any of these types.")
        ] = None,
        filter: AboutNodes = None,  # noqa: A002 - the contract's name
        after: FeedAfter = None,
    ) -> AsyncIterator[NodeConditionChanged]:
        """Follow `node.condition.changed`."""
        query = EventQuery(
            types=frozenset({CONDITION_CHANGED}),
            node_ids=frozenset(listed("nodeIds", node_ids)),
            nodes=node_query(filter),
            conditions=frozenset(listed("types", types)),
        )
        async for event in cases.subscribe(info.context, query, after):
            yield cast("NodeConditionChanged", event)

    @strawberry.subscription(description="Faults of devices that were raised, told anew or are over.")
    async def device_health_changed(
        self,
        info: Info,
        node_ids: NodeIds = None,
        filter: AboutNodes = None,  # noqa: A002 - the contract's name
        after: FeedAfter = None,
    ) -> AsyncIterator[DeviceHealthChanged]:
        """Follow `device.health.changed`."""
        query = EventQuery(
            types=frozenset({DEVICE_HEALTH_CHANGED}),
            node_ids=frozenset(listed("nodeIds", node_ids)),
            nodes=node_query(filter),
        )
        async for event in cases.subscribe(info.context, query, after):
            yield cast("DeviceHealthChanged", event)

    @strawberry.subscription(description="Events of any type.")
    async def events(
        self,
        info: Info,
        filter: Annotated[EventFilter | None, strawberry.argument(description="Which events.")] = None,  # noqa: A002
        nodes: AboutNodes = None,
        after: FeedAfter = None,
    ) -> AsyncIterator[Event]:
        """Follow the feed."""
        query = replace(event_query(filter), nodes=node_query(nodes))
        async for event in cases.subscribe(info.context, query, after):
            yield cast("Event", event)

    @strawberry.subscription(
        description="A live view of the fleet: the nodes that fit as they are (ENTERED), a mark (SYNCED), then every "
        "change. With `after`, instead of all nodes those that may have changed since: ENTERED when they fit, whether "
        "they did before or not, else LEFT, also when they never fitted. Several changes of a node may be told as one."
    )
    async def node_changes(
        self,
        info: Info,
        filter: Annotated[NodeFilter | None, strawberry.argument(description="Which nodes.")] = None,  # noqa: A002
        after: FeedAfter = None,
    ) -> AsyncIterator[NodeChange]:
        """Follow the nodes that fit."""
        async for change in follow_nodes(info.context, node_query(filter), after):
            yield cast("NodeChange", change)

    @strawberry.subscription(
        description="For a node's agent: what the node is to do, each command when it falls due. It begins with all "
        "that is not finished, so that a subscription that is opened anew misses nothing."
    )
    async def node_commands(self, info: Info, node_id: NodeId) -> AsyncIterator[Command]:
        """Follow a node's commands."""
        async for command in command_cases.follow_commands(info.context, node_id):
            yield cast("Command", command)
