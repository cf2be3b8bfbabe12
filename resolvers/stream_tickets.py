"""Tickets: what opens an event stream where no header can carry a token."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from db.access import add_ticket
from domain.access import STREAM_TICKET_LIFE, secret_hash
from resolvers.context import Context
from resolvers.reading import viewer

TICKET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class StreamTicket:
    """A ticket's text, which is not kept, and until when it opens streams."""

    ticket: str
    expires_at: datetime


async def create_stream_ticket(context: Context) -> StreamTicket:
    """Make a ticket that opens what the asker's token may read; it ends before that token does."""
    principal = viewer(context)
    now = context.services.now()
    expires_at = now + STREAM_TICKET_LIFE
    text = f"fg_ticket_{secrets.token_urlsafe(TICKET_BYTES)}"
    async with context.transaction() as tx:
        await add_ticket(tx, secret_hash(text), principal.token_id, expires_at, now)
    return StreamTicket(text, expires_at)
