"""An event stream, read line by line as it comes."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.server import Client


@dataclass(slots=True)
class Event:
    """What stands between two empty lines."""

    fields: dict[str, str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)

    @property
    def answer(self) -> dict[str, Any]:
        """The GraphQL answer."""
        return dict(json.loads(self.fields["data"]))


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    """Yield what comes, comments and fields alone too, until the stream ends."""
    event = Event()
    async for line in answer.aiter_lines():
        if not line:
            yield event
            event = Event()
        elif line.startswith(":"):
            event.comments.append(line[1:].strip())
        else:
            name, _, value = line.partition(": ")
            event.fields[name] = value


async def with_data(told: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Leave out what tells no event: comments, and places without one."""
    async for event in told:
        if "data" in event.fields:
            yield event


@asynccontextmanager
async def open_stream(
    address: str, client: Client, query: str, variables: Mapping[str, Any], **headers: str
) -> AsyncIterator[AsyncIterator[Event]]:
    """Ask for a stream by POST, and give its events with data."""
    async with open_whole_stream(address, client, query, variables, **headers) as told:
        yield with_data(told)


@asynccontextmanager
async def open_whole_stream(
    address: str, client: Client, query: str, variables: Mapping[str, Any], **headers: str
) -> AsyncIterator[AsyncIterator[Event]]:
    """Ask for a stream by POST, and give all that comes behind the preamble."""
    sent = {"Authorization": f"Bearer {client.token}", "Accept": "text/event-stream", **headers}
    body = {"query": query, "variables": variables}
    async with (
        httpx.AsyncClient(timeout=10) as http,
        http.stream("POST", f"{address}/graphql", json=body, headers=sent) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        told = events(answer)
        assert (await anext(told)).fields == {"retry": "2000"}
        yield told
