"""Health, readiness and metrics."""

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from db.connections import TRANSIENT
from domain.access import Permission
from domain.errors import Refusal
from resolvers.context import Services
from web.authentication import Authentication

_READY_SECONDS_MAX: Final = 2.0


async def healthz(_request: Request) -> Response:
    """Say that the process lives."""
    return PlainTextResponse("ok\n")


def health_routes(services: Services, authentication: Authentication) -> list[Route]:
    """Make the routes: liveness and readiness are open, metrics need a token that may read."""

    async def readyz(_request: Request) -> Response:
        try:
            async with asyncio.timeout(_READY_SECONDS_MAX), services.database.session() as tx:
                await tx.value("select 1")
        except TRANSIENT as error:
            return JSONResponse({"ready": False, "reason": f"the database is away: {error!r}"}, 503)
        return JSONResponse({"ready": True})

    async def expose(request: Request) -> Response:
        try:
            principal = await authentication.principal(request.headers.get("authorization"))
            principal.require(Permission.READ)
        except Refusal as refusal:
            return JSONResponse({"error": refusal.message}, 401, headers={"WWW-Authenticate": "Bearer"})
        text = services.meter.exposition(
            subscribers=services.feed.subscribers,
            head=services.feed.head,
            behind_seconds=services.admission.behind_seconds(),
        )
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", expose)]
