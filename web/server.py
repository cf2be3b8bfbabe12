"""Running a process of the server: database, reconcilers, feed and HTTP, started in order and stopped cleanly."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import structlog
import uvicorn

from db.database import Database
from db.embedded import EmbeddedPostgres
from db.hints import Hints
from db.inventory import retry_failed
from db.migrate import migrate
from db.replica import Replica
from domain.liveness import Patience
from reconcilers.acceptance import acceptance
from reconcilers.commands import commands
from reconcilers.conflicts import conflicts
from reconcilers.draining import draining
from reconcilers.elsewhere import elsewhere
from reconcilers.faults import faults
from reconcilers.gpu_models import gpu_models
from reconcilers.hygiene import hygiene
from reconcilers.inventory import inventory
from reconcilers.leases import leases
from reconcilers.liveness import liveness, reachable
from reconcilers.loop import run
from reconcilers.relay import relay
from reconcilers.remediation import remediation
from reconcilers.retention import retention
from resolvers.context import Services
from web.app import application, open_services, utc_now
from web.connections import Bounds, HttpConnection, SocketConnection, give_up_slow_clients
from web.first_start import SignIn, first_operator_token
from web.garbage import leave_out_the_start
from web.settings import Settings

GRACE_SECONDS = 3
PING_SECONDS = 20.0
BACKLOG = 2048
"""As uvicorn has it."""
_log = structlog.get_logger("server")


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Open the database of DATABASE_URL, else the embedded one, brought up to date; stop what was started."""
    async with _server_dsn(settings) as dsn:
        role = await migrate(dsn)
        if role is None:
            _log.warning("the database does not keep this server from changing history", see="docs/database.md")
        database = await Database.connect(dsn, size_max=settings.pool_size, role=role)
        try:
            yield database
        finally:
            await database.close()


@asynccontextmanager
async def _server_dsn(settings: Settings) -> AsyncIterator[str]:
    if settings.database_url:
        yield settings.database_url
        return
    embedded = EmbeddedPostgres(settings.data_dir / "postgres")
    dsn = await asyncio.to_thread(embedded.start)
    try:
        yield dsn
    finally:
        await asyncio.shield(asyncio.to_thread(embedded.stop))


def _replica(database: Database, settings: Settings) -> Replica | None:
    if not settings.read_database_url:
        return None
    return Replica(database.dsn, settings.read_database_url, size_max=settings.pool_size)


def fan_out(settings: Settings, dsn: str, *, alone: bool) -> str:
    """Return where hints travel: memory:// reaches no other process, and the database everyone who has it."""
    in_memory = settings.broadcast_url.startswith("memory:")
    return dsn if in_memory and not alone else settings.broadcast_url


@asynccontextmanager
async def reconciling(database: Database, hints: Hints, settings: Settings) -> AsyncIterator[None]:
    """Run the reconcilers while the block lasts."""
    async with database.transaction() as tx:
        await retry_failed(tx)
    loops = (
        relay(database, hints, settings.event_retention),
        inventory(database, utc_now),
        conflicts(database),
        gpu_models(database),
        leases(database),
        liveness(database, Patience(settings.unreachable_after, settings.lost_after), utc_now),
        hygiene(database, settings.min_agent_version, utc_now),
        commands(database, utc_now),
        faults(database, utc_now),
        draining(database),
        acceptance(database, utc_now),
        remediation(database, utc_now, automatic=settings.remediation),
        retention(database, settings.event_retention, utc_now),
    )
    hints.woken_by(database.wakes)
    async with background(*(run(loop) for loop in loops)):
        yield


@asynccontextmanager
async def _leaving_it_to_others(database: Database, hints: Hints, settings: Settings) -> AsyncIterator[None]:
    """Have other processes reconcile while the block lasts; what this one commits it places itself."""
    loops = (relay(database, hints, settings.event_retention, pause_seconds=None), *elsewhere(database, hints))
    async with background(*(run(loop) for loop in loops)):
        yield


@asynccontextmanager
async def background(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines while the block lasts; one that fails ends the block with its error."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in coroutines]
        yield
        for task in tasks:
            task.cancel()


class Server(uvicorn.Server):
    """Uvicorn, whose signals are ours: whoever started us also stops what is beside it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


@asynccontextmanager
async def listening(
    services: Services, settings: Settings, listener: socket.socket | None = None
) -> AsyncIterator[tuple[Server, str]]:
    """Serve HTTP while the block lasts, on the settings' address or a listener; gives the server and its address."""
    bounds = Bounds(settings.client_buffer_bytes, settings.slow_client_seconds)
    listener = listener or open_listener(settings)
    app = application(services, settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        http=cast("type[asyncio.Protocol]", partial(HttpConnection, bounds)),
        ws=cast("type[asyncio.Protocol]", partial(SocketConnection, bounds)),
        ws_ping_interval=min(PING_SECONDS, bounds.seconds_max),
        ws_ping_timeout=bounds.seconds_max,
        ws_max_size=settings.body_bytes_max,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([listener]))
        await server.listening.wait()
        connections = server.server_state.connections
        beside = background(give_up_slow_clients(connections, bounds.seconds_max), app.state.sessions.run())
        try:
            async with beside:
                yield server, address_of(listener)
        finally:
            services.stopping.set()
            server.should_exit = True


def address_of(listener: socket.socket) -> str:
    """Return the URL that a listener is reached by from this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://{_url_host(host)}:{port}"


def _url_host(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - read


def open_listener(settings: Settings) -> socket.socket:
    """Bind to the settings' address; raises AddressTaken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # else the kernel keeps megabytes for each client, unseen by us
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, settings.client_buffer_bytes)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise AddressTaken(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "stop what listens there or set FLEETGRAPH_PORT"
        ) from error
    return listener


class AddressTaken(RuntimeError):  # noqa: N818 - it says what is wrong with the address
    """The address cannot be listened on."""


@asynccontextmanager
async def stop_signals() -> AsyncIterator[asyncio.Event]:
    """Give an event that SIGINT and SIGTERM set, while the block lasts."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def serving(
    settings: Settings, *, reconcile: bool, listener: socket.socket | None = None
) -> AsyncIterator[tuple[Database, str, SignIn]]:
    """Run a whole server process while the block lasts; gives its database, its address and how to sign in.

    Whoever reaches it can sign in: the first token is there before it listens.
    """
    async with open_database(settings) as database:
        sign_in = await first_operator_token(database, settings.operator_token, utc_now())
        hints = Hints(fan_out(settings, database.dsn, alone=reconcile))
        async with contextlib.AsyncExitStack() as stack:
            replica = _replica(database, settings)
            services = await stack.enter_async_context(
                open_services(
                    database,
                    hints,
                    compiled_reads=settings.compiled_reads,
                    pressure_thresholds=settings.pressure_thresholds,
                    replica=replica,
                    rates=settings.rates,
                )
            )
            await stack.enter_async_context(background(services.feed.run(), *([replica.run()] if replica else [])))
            work = reconciling if reconcile else _leaving_it_to_others
            await stack.enter_async_context(work(database, hints, settings))
            _, address = await stack.enter_async_context(listening(services, settings, listener))
            await stack.enter_async_context(background(run(reachable(database))))
            leave_out_the_start()
            _log.info("listening", address=address)
            yield database, address, sign_in
