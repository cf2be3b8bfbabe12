"""Tickets for event streams."""

from datetime import datetime
from typing import cast

import strawberry

from resolvers import stream_tickets as cases
from schema.objects import Info


@strawberry.type(description="What opens event streams in place of a token, for a browser's `EventSource`.")
class StreamTicket:
    """A ticket."""

    ticket: str = strawberry.field(description="For the parameter `ticket` of `GET /graphql`.")
    expires_at: datetime = strawberry.field(description="Until when it opens streams; those that are open go on.")


@strawberry.type
class StreamTicketMutations:
    """Root fields about tickets; each asks for permission first."""

    @strawberry.mutation(
        description="Make a ticket that opens event streams by `GET` for a minute, as the token does that asks for it."
    )
    async def create_stream_ticket(self, info: Info) -> StreamTicket:
        """Make a ticket."""
        return cast("StreamTicket", await cases.create_stream_ticket(info.context))
