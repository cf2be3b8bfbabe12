"""The live fleet view as a subscriber sees it."""

from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass

from db.declared.nodes import NODES, NodeQuery
from db.views.selection import Asked
from domain import cursor
from domain.access import Permission
from domain.node_view import ViewChange
from resolvers.context import Context
from resolvers.node_views import Told
from resolvers.reading import refuse_wide_filter
from resolvers.reads import One
from resolvers.results import Shown


@dataclass(frozen=True, slots=True)
class ToldChange:
    """A change of a view on its way to a subscriber, with the context that the node's fields load with."""

    kind: ViewChange
    node_id: str | None
    cursor: str | None
    key: Hashable
    context: Context
    shown: Shown

    @property
    def node(self) -> One | None:
        """The node as it is when it is read, which is never before the change; None for one that left."""
        if self.node_id is None or self.kind is ViewChange.LEFT:
            return None
        return One(NODES, Asked((NODES.where("id", (self.node_id,)),)), self.node_id)


async def follow_nodes(context: Context, query: NodeQuery, after: str | None) -> AsyncIterator[ToldChange]:
    """Yield the tenant's nodes that fit, or what may have changed since a cursor; a mark; then every change.

    Raises InvalidInput, and CursorExpired when the log no longer holds what follows.
    """
    tenant_id = context.require(Permission.READ)
    refuse_wide_filter(*query.lists(), text=query.text)
    start = None if after is None else cursor.decode_feed(after)
    shown = Shown()
    async for told in context.services.views.follow(tenant_id, query, start):
        yield _change(context, query, told, shown)


def _change(context: Context, query: NodeQuery, told: Told, shown: Shown) -> ToldChange:
    here = None if told.cursor is None else cursor.encode_feed(told.cursor)
    return ToldChange(told.change, told.node_id, here, (query, told.key), context.operation(snapshot=True), shown)
