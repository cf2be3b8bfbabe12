"""The live view of nodes: which of them fit a query, and what became of those that events told of."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

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


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the nodes that events told of has shown: the view's members then, and what to tell."""

    members: frozenset[NodeId]
    told: tuple[NodeTold, ...]

    @classmethod
    def first(cls, members: frozenset[NodeId]) -> Self:
        """Begin a view with all that fit; nobody was told anything before."""
        return cls(frozenset(members), ())

    def again(self, touched: Iterable[NodeId], fitting: frozenset[NodeId]) -> "Seen":
        """Look again: of the nodes that were touched these fit now. What neither fitted nor fits is not told."""
        told = []
        for node_id in sorted(set(touched)):
            if node_id in fitting:
                told.append(NodeTold(ViewChange.CHANGED if node_id in self.members else ViewChange.ENTERED, node_id))
            elif node_id in self.members:
                told.append(NodeTold(ViewChange.LEFT, node_id))
        entered = {each.node_id for each in told if each.change is ViewChange.ENTERED}
        left = {each.node_id for each in told if each.change is ViewChange.LEFT}
        members = (self.members - left) | entered if entered or left else self.members
        return Seen(members, tuple(told))


def caught_up(touched: Iterable[NodeId], members: frozenset[NodeId]) -> tuple[NodeTold, ...]:
    """Tell a client that was away what it may have missed: what it knew of these nodes nobody remembers."""
    return tuple(
        NodeTold(ViewChange.ENTERED if node_id in members else ViewChange.LEFT, node_id)
        for node_id in sorted(set(touched))
    )
