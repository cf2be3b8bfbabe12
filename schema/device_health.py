"""What operators say of devices' health."""

from typing import Annotated, cast

import strawberry

from resolvers import device_health as cases
from schema.arguments import Id
from schema.compute_node import ComputeNode
from schema.device import Device
from schema.objects import Info

DeviceIdArgument = Annotated[strawberry.ID, strawberry.argument(description="The device.")]


@strawberry.type
class DeviceHealthMutations:
    """A part of the root of mutations."""

    @strawberry.mutation(
        description="Say that what its kernel log, or an operator, told to be wrong with a device is over: with its "
        "parts, and with what it made of its node. What is reported of it again is history. What its inventory shows "
        "stays as long as the inventory shows it."
    )
    async def clear_device_health(
        self,
        info: Info,
        device_id: DeviceIdArgument,
        reason: Annotated[str | None, strawberry.argument(description="Why, for people.")] = None,
    ) -> Device:
        """Clear a device."""
        return cast("Device", await cases.clear_device_health(info.context, device_id, reason))

    @strawberry.mutation(
        description="Say that all that a node's kernel log told to be wrong is over, also of GPUs that nobody can name."
    )
    async def clear_node_faults(
        self,
        info: Info,
        id: Id,  # noqa: A002 - as the contract's mutations of nodes have it
        reason: Annotated[str | None, strawberry.argument(description="Why, for people.")] = None,
    ) -> ComputeNode:
        """Clear a node."""
        return cast("ComputeNode", await cases.clear_node_faults(info.context, id, reason))

    @strawberry.mutation(
        description="Take a device with its parts out of placement until it is cleared; who has it keeps it."
    )
    async def quarantine_device(
        self,
        info: Info,
        device_id: DeviceIdArgument,
        reason: Annotated[str, strawberry.argument(description="Why, for people.")],
    ) -> Device:
        """Quarantine a device."""
        return cast("Device", await cases.quarantine_device(info.context, device_id, reason))
