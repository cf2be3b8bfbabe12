"""A peer: Strawberry and broadcaster as their documents show them, run as `python -m bench.feeding.broadcaster`.

Every subscriber has a queue of its own, filled by one LISTEN of the process; there is no log and no cursor.
"""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import strawberry
import uvicorn
from broadcaster import Broadcast
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from strawberry.asgi import GraphQL

_CHANNEL: Final = os.environ["CHANNEL"]
_broadcast: Final = Broadcast(os.environ["DATABASE_URL"])


@strawberry.type
class Event:
    """What the channel's message says."""

    id: strawberry.ID
    cursor: str
    type: str
    at: str
    node_id: str | None
    condition: str
    status: str
    reason: str


@strawberry.type
class Query:
    """Needed by every schema."""

    ready: bool = True


@strawberry.type
class Subscription:
    """One field."""

    @strawberry.subscription
    async def event(self) -> AsyncGenerator[Event, None]:
        """Follow the channel."""
        async with _broadcast.subscribe(channel=_CHANNEL) as subscriber:
            async for event in subscriber:
                yield Event(**json.loads(event.message))


@asynccontextmanager
async def _lifespan(_: Starlette) -> AsyncIterator[None]:
    # Subscribed from the start: of clients that come first at the same time, broadcaster forgets all but one.
    async with _broadcast, _broadcast.subscribe(channel=_CHANNEL):
        yield


if __name__ == "__main__":
    graphql = GraphQL(strawberry.Schema(Query, subscription=Subscription))
    app = Starlette(routes=[WebSocketRoute("/graphql", graphql)], lifespan=_lifespan)
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
