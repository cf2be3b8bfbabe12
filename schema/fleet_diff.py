"""What changed in a fleet between two times."""

from typing import cast

import strawberry

from resolvers.fleet_diff import NodeDiff
from schema.compute_node import ComputeNode
from schema.objects import Info
from schema.snapshot import InventoryChange, Snapshot


@strawberry.type(description="What changed of a node between two times.")
class FleetDiff:
    """A comparison of the snapshots that a node had at two times."""

    to: Snapshot = strawberry.field(description="The snapshot it had at the later time.")
    changes: list[InventoryChange] = strawberry.field(
        description="What changed, in the diff's order; none for a node that is new or has reported the same again."
    )

    @strawberry.field(description="The node.")
    def node(self, info: Info) -> ComputeNode:
        """Ask for the node."""
        return cast("ComputeNode", cast("NodeDiff", self).node(info.context))

    @strawberry.field(name="from", description="The snapshot it had at the earlier time; null when there was none yet.")
    def older(self) -> Snapshot | None:
        """Return the older side."""
        return cast("Snapshot | None", cast("NodeDiff", self).from_)
