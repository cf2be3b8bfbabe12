"""Relay connections."""

from typing import Any, Generic, TypeVar, cast

import strawberry

from resolvers.connections import Connection as Rows
from schema.scalars import Cursor

Item = TypeVar("Item")


@strawberry.type(description="Where a page lies in its list.")
class PageInfo:
    """Relay's PageInfo."""

    has_next_page: bool = strawberry.field(description="More rows follow.")
    has_previous_page: bool = strawberry.field(description="The page does not start the list.")
    start_cursor: Cursor | None = strawberry.field(description="Cursor of the first row.")
    end_cursor: Cursor | None = strawberry.field(description="Cursor of the last row: `after` of the next page.")


@strawberry.type(description="A row of a page with its cursor.")
class Edge(Generic[Item]):
    """Relay's edge."""

    cursor: Cursor = strawberry.field(description="Cursor of this row.")
    node: Item = strawberry.field(description="The row.")


@strawberry.type(description="A page of a list.")
class Connection(Generic[Item]):
    """Relay's connection over the rows that `resolvers.connections` read."""

    @strawberry.field(description="The rows of the page, each with its cursor.")
    def edges(self) -> list[Edge[Item]]:
        """Pair each row with its cursor."""
        rows = cast("Rows", self)
        return [Edge(cursor=Cursor(row.cursor), node=cast("Any", row)) for row in rows.rows]

    @strawberry.field(description="The rows of the page.")
    def nodes(self) -> list[Item]:
        """Return the rows without cursors."""
        return cast("list[Item]", cast("Rows", self).rows)

    @strawberry.field(description="Where the page lies.")
    def page_info(self) -> PageInfo:
        """Say what lies around the page."""
        rows = cast("Rows", self)
        return PageInfo(
            has_next_page=rows.has_next,
            has_previous_page=rows.has_previous,
            start_cursor=Cursor(rows.rows[0].cursor) if rows.rows else None,
            end_cursor=Cursor(rows.rows[-1].cursor) if rows.rows else None,
        )

    @strawberry.field(description="How many rows the whole list has; counted only when asked for.")
    async def total_count(self) -> int:
        """Count the list."""
        return await cast("Rows", self).count()
