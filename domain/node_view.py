"""The live view of nodes: which of them fit a query, and what became of those that events told of."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum

from domain.ids import NodeId


class ViewChange(StrEnum):
    """What became of a node in a view."""

    ENTERED = "entered"
    CHANGED = "changed"
    LEFT = "left"
    SYNCED = "synced"
    """Nothing of a node: up to here the view is whole."""


@dataclass(frozen=True, slots=True)
class NodeTold:
    """A node of which a view has something to tell."""

    change: ViewChange
    node_id: NodeId


def looked_again(
    members: Container[NodeId], touched: Iterable[NodeId], fitting: Container[NodeId]
) -> tuple[NodeTold, ...]:
    """Tell what became of the nodes that events told of, of which these fit now, in a view that had these members.

    What neither fitted nor fits is not told.
    """
    told = []
    for node_id in sorted(set(touched)):
        if node_id in fitting:
            told.append(NodeTold(ViewChange.CHANGED if node_id in members else ViewChange.ENTERED, node_id))
        elif node_id in members:
            told.append(NodeTold(ViewChange.LEFT, node_id))
    return tuple(told)


def caught_up(touched: Iterable[NodeId], members: Container[NodeId]) -> tuple[NodeTold, ...]:
    """Tell a client that was away what it may have missed: what it knew of these nodes nobody remembers."""
    return tuple(
        NodeTold(ViewChange.ENTERED if node_id in members else ViewChange.LEFT, node_id)
        for node_id in sorted(set(touched))
    )
