"""The application: everything put together around one database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route, WebSocketRoute

from db.database import Database
from db.hints import Hints
from db.replica import Replica
from domain.admission import Rates
from domain.pressure import THRESHOLDS, AllThresholds
from resolvers.admission import Admission
from resolvers.context import Services
from resolvers.feed import Feed
from resolvers.lateness import LoopLag, behind
from resolvers.node_views import NodeViews
from resolvers.reports import Reports
from resolvers.streams import Streams
from schema.compiled import CompiledOperations
from schema.graph import Graph, build, core_schema
from web.authentication import Authentication
from web.body_limit import BodyLimit
from web.compression import COMPRESSION
from web.console import console_routes
from web.documents import Documents
from web.front import GRAPHQL_PATH, Front
from web.graphql_view import GraphQLView
from web.health import health_routes
from web.metrics import Metrics
from web.settings import Settings
from web.trusted_documents import trusted_documents


def utc_now() -> datetime:
    """Return the time; the one clock that decisions are given."""
    return datetime.now(UTC)


@asynccontextmanager
async def open_services(  # noqa: PLR0913 - what a process is made of
    database: Database,
    hints: Hints,
    *,
    compiled_reads: bool = True,
    pressure_thresholds: AllThresholds = THRESHOLDS,
    replica: Replica | None = None,
    rates: Rates | None = None,
) -> AsyncIterator[Services]:
    """Make the process's services, which watch how far behind it is while the block lasts."""
    feed = Feed(database, hints)
    await feed.start()
    reports, lag = Reports.to(database, utc_now), LoopLag()
    watching = asyncio.create_task(lag.run())
    try:
        yield Services(
            database,
            feed,
            utc_now,
            reports,
            Streams(feed),
            NodeViews(database, feed),
            compiled_reads,
            Metrics(),
            pressure_thresholds=pressure_thresholds,
            admission=Admission(rates, behind(lag, database, reports)),
            replica=replica,
        )
    finally:
        watching.cancel()


def application(services: Services, settings: Settings) -> Starlette:
    """Make the ASGI application; who runs it also runs `services.feed`, its replica and the sessions of its state.

    Raises ManifestRefused.
    """
    graph = build()
    documents = _documents(settings, graph)
    authentication = Authentication(services.database, services.now)
    view = GraphQLView(graph, services, authentication, documents, settings.allowed_origins)
    routes = [
        Route(GRAPHQL_PATH, view),
        WebSocketRoute(GRAPHQL_PATH, view),
        *health_routes(services, authentication),
        *console_routes(),
    ]
    limit = Middleware(
        BodyLimit,
        body_bytes_max=settings.body_bytes_max,
        decompressed_bytes_max=settings.decompressed_bytes_max,
    )
    front = Middleware(
        Front,
        operations=CompiledOperations(core_schema(graph)),
        services=services,
        authentication=authentication,
        documents=documents,
    )
    app = Starlette(routes=routes, middleware=[COMPRESSION, limit, front])
    app.state.sessions = view.sessions
    return app


def _documents(settings: Settings, graph: Graph) -> Documents:
    if settings.trusted_documents is None:
        return Documents()
    return Documents(trusted_documents(settings.trusted_documents, core_schema(graph)))
