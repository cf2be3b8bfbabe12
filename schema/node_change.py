"""Changes of a live view of nodes."""

from typing import cast

import strawberry

from resolvers.node_changes import ToldChange
from schema.compute_node import ComputeNode
from schema.enums import ViewChange
from schema.scalars import Cursor


@strawberry.type(
    description="What became of a node in a view of those that fit a filter. Whoever keeps the nodes by their ids, "
    "puts what ENTERED or CHANGED in place of what was there and takes away what LEFT, has with every `cursor` what "
    "a query has at it."
)
class NodeChange:
    """A change, or the mark."""

    kind: ViewChange = strawberry.field(description="What became of it.")
    node_id: strawberry.ID | None = strawberry.field(description="The node; null for SYNCED.")
    cursor: Cursor | None = strawberry.field(
        description="Its place in the feed: `after` of what follows it. Null before the first SYNCED, as a view is "
        "whole only then."
    )

    @strawberry.field(description="The node, as it is now, which may be newer than the change; null when it left.")
    def node(self) -> ComputeNode | None:
        """Ask for the node."""
        return cast("ComputeNode | None", cast("ToldChange", self).node)
