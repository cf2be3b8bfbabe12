"""The floor: hand-written SQL behind a bare Starlette endpoint, one process, run as `python -m bench.reading.floor`.

It answers the same JSON for the bench's requests and for nothing else. It authorizes nothing, parses no GraphQL and
knows its requests by their operation's name; the tenant stands at the root of each statement.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import orjson
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.reading import floor_sql as sql
from domain.cursor import decode_page, encode_page

_SCOPE: Final = "nodes:id"
_SERVER_SETTINGS: Final = {"application_name": "floor", "jit": "off"}

Variables = dict[str, Any]


class Floor:
    """The statements and how their rows become an answer."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", tenant_id: str) -> None:
        self._pool = pool
        self._tenant_id = tenant_id
        self._operations: dict[str, Callable[[Variables], Awaitable[str]]] = {
            "List": lambda variables: self._page(sql.LIST, variables),
            "Rows": lambda variables: self._page(sql.ROWS, variables),
            "Filtered": self._filtered,
            "One": self._one,
            "Counts": self._counts,
        }

    async def answer(self, request: Request) -> Response:
        """Answer one of the bench's requests."""
        asked = orjson.loads(await request.body())
        text = await self._operations[asked["operationName"]](asked.get("variables") or {})
        return Response(text, media_type="application/json")

    async def _page(self, statement: str, variables: Variables) -> str:
        after, first = variables.get("after"), variables["first"]
        key = "" if after is None else decode_page(after, _SCOPE, 1)[0]
        return _connection(await self._pool.fetch(statement, self._tenant_id, key, first + 1), first)

    async def _filtered(self, variables: Variables) -> str:
        first, asked = variables["first"], variables["filter"]
        states = [state.lower() for state in asked["provisionState"]]
        key, value = asked["selector"].split("=")
        rows = await self._pool.fetch(sql.FILTERED, self._tenant_id, states, key, value, first + 1)
        return _connection(rows, first)

    async def _one(self, variables: Variables) -> str:
        found = await self._pool.fetchval(sql.ONE, self._tenant_id, variables["id"])
        return f'{{"data":{{"computeNode":{found}}}}}'

    async def _counts(self, _: Variables) -> str:
        found = await self._pool.fetchval(sql.COUNTS, self._tenant_id)
        return f'{{"data":{{"fleetSummary":{{"gpuModels":{found}}}}}}}'


def _connection(rows: "list[asyncpg.Record]", first: int) -> str:
    """Join the rows of a page, (id, JSON text) each, one more than asked when there is a next page."""
    page = rows[:first]
    if not page:
        return '{"data":{"nodes":{"edges":[],"pageInfo":{"hasNextPage":false,"endCursor":null}}}}'
    edges = '},{"node":'.join([row[1] for row in page])
    more = "true" if len(rows) > first else "false"
    end = encode_page(_SCOPE, (page[-1][0],))
    return (
        f'{{"data":{{"nodes":{{"edges":[{{"node":{edges}}}],'
        f'"pageInfo":{{"hasNextPage":{more},"endCursor":"{end}"}}}}}}}}'
    )


async def _leave_as_it_is(_: object) -> None:
    """Reset nothing when a connection comes back: no statement changes a session."""


@asynccontextmanager
async def _serving(app: Starlette) -> AsyncIterator[None]:
    size = int(os.environ["POOL_SIZE"])
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"],
        min_size=size,
        max_size=size,
        reset=_leave_as_it_is,
        server_settings=_SERVER_SETTINGS,
    ) as pool:
        floor = Floor(pool, os.environ["TENANT_ID"])
        app.router.routes.append(Route("/graphql", floor.answer, methods=["POST"]))
        yield


def main() -> None:
    """Serve until a signal comes, with the options of `web.server`."""
    config = uvicorn.Config(
        Starlette(lifespan=_serving),
        port=int(os.environ["PORT"]),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="websockets-sansio",
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main()
