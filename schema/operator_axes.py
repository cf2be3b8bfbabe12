"""Mutations by which operators keep work off nodes."""

from typing import Annotated, cast

import strawberry

from resolvers import operator_axes as cases
from schema.arguments import Id
from schema.compute_node import ComputeNode
from schema.objects import Info


@strawberry.type
class AxisMutations:
    """Root fields about cordoning, draining and maintenance; each asks for permission first."""

    @strawberry.mutation(description="Give a node no new work; what it has stays.")
    async def cordon_node(self, info: Info, id: Id) -> ComputeNode:  # noqa: A002 - contract
        """Cordon a node."""
        return cast("ComputeNode", await cases.cordon_node(info.context, id))

    @strawberry.mutation(description="Give a node work again: it is neither cordoned nor draining any more.")
    async def uncordon_node(self, info: Info, id: Id) -> ComputeNode:  # noqa: A002 - contract
        """Uncordon a node."""
        return cast("ComputeNode", await cases.uncordon_node(info.context, id))

    @strawberry.mutation(
        description="Empty a node: it is cordoned, and `node.drained` tells when nothing is held of it any more. "
        "Nothing is released for it."
    )
    async def drain_node(self, info: Info, id: Id) -> ComputeNode:  # noqa: A002 - contract
        """Drain a node."""
        return cast("ComputeNode", await cases.drain_node(info.context, id))

    @strawberry.mutation(description="Put a node in maintenance, or take it out.")
    async def set_maintenance(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        on: Annotated[bool, strawberry.argument(description="Whether it is in maintenance.")],
        reason: Annotated[str | None, strawberry.argument(description="Why, for people.")] = None,
    ) -> ComputeNode:
        """Set a node's maintenance."""
        return cast("ComputeNode", await cases.set_maintenance(info.context, id, reason, on=on))
