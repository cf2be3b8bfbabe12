"""The server's command line: `fleetgraph`."""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Final, NoReturn

import asyncpg
import typer
import uvloop
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape

from db.access import list_tokens, revoke_token
from db.embedded import EmbeddedPostgresError
from db.hints import Hints
from db.migrate import UnreachableDatabase, UnsupportedDatabase
from domain.access import Role
from domain.ids import TokenId
from schema.graph import build, sdl
from web import up as together
from web.app import utc_now
from web.authentication import issue_token
from web.first_start import default_tenant, first_operator_token
from web.garbage import look_less_often
from web.logging import configure_logging
from web.processes import Processes, StartRefused, beat
from web.server import (
    BACKLOG,
    AddressTaken,
    address_of,
    background,
    fan_out,
    open_database,
    open_listener,
    reconciling,
    serving,
    stop_signals,
)
from web.settings import Settings
from web.trusted_documents import ManifestRefused

app: Final = typer.Typer(
    name="fleetgraph",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="The hardware plane of a GPU fleet.",
)
tokens: Final = typer.Typer(no_args_is_help=True, help="Tokens of operators and agents.")
app.add_typer(tokens, name="token")
_EXPECTED: Final = (
    EmbeddedPostgresError,
    UnreachableDatabase,
    UnsupportedDatabase,
    AddressTaken,
    StartRefused,
    ManifestRefused,
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
)


def main() -> None:
    """Run the command line."""
    app()


@app.command()
def up(*, demo: Annotated[bool, typer.Option(help="Run a simulated fleet beside this machine.")] = False) -> None:
    """Serve everything, with an agent that reports this machine; what `make up` runs."""
    _run(together.up(_settings(), demo=demo))


@app.command()
def serve(
    *,
    reconcile: Annotated[bool, typer.Option(help="Run the reconcilers in this process too.")] = True,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="API processes behind one address, each started again when it ends.")
    ] = 1,
    fd: Annotated[
        int | None, typer.Option(help="Listen on this inherited file descriptor instead (socket activation).")
    ] = None,
    parent_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the API and the console."""
    settings = _settings()
    listener = None if fd is None else socket.socket(fileno=fd)
    if processes > 1:
        _run(_serve_many(settings, listener, processes, reconcile=reconcile))
        return

    async def run() -> None:
        async with AsyncExitStack() as stack:
            stop = await stack.enter_async_context(stop_signals())
            _, address, sign_in = await stack.enter_async_context(
                serving(settings, reconcile=reconcile, listener=listener)
            )
            if parent_fd is None:
                together.greet(address, sign_in)
            else:
                await stack.enter_async_context(background(beat(parent_fd, stop)))
            await stop.wait()

    _run(run())


async def _serve_many(settings: Settings, given: socket.socket | None, count: int, *, reconcile: bool) -> None:
    async with stop_signals() as stop, open_database(settings) as database:
        with given or open_listener(settings) as listener:
            listener.listen(BACKLOG)  # who comes before a process is ready waits instead of being refused
            together.greet(
                address_of(listener), await first_operator_token(database, settings.operator_token, utc_now())
            )
            arguments = () if reconcile else ("--no-reconcile",)
            env = {"DATABASE_URL": database.dsn, "BROADCAST_URL": fan_out(settings, database.dsn, alone=False)}
            await Processes(listener, arguments, env, stop).run(count)


@app.command()
def worker() -> None:
    """Run the reconcilers beside API processes, of which some or all were started with --no-reconcile."""
    settings = _settings()

    async def run() -> None:
        async with stop_signals() as stop, open_database(settings) as database:
            hints = Hints(fan_out(settings, database.dsn, alone=False))
            async with background(hints.run(lambda _position: None)), reconciling(database, hints, settings):
                Console(stderr=True).print("Reconciling; Ctrl-C stops.")
                await stop.wait()

    _run(run())


@app.command()
def migrate() -> None:
    """Bring the database's schema up to date and leave."""

    async def run() -> None:
        async with open_database(_settings()):
            Console(stderr=True).print("The schema is up to date.")

    _run(run())


@app.command()
def schema() -> None:
    """Print the GraphQL schema."""
    sys.stdout.write(sdl(build()))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
def simulate(context: typer.Context) -> NoReturn:
    """Report a simulated fleet (the agent's own command: `fleetgraph-agent simulate`)."""
    agent = Path(sys.executable).with_name("fleetgraph-agent")
    os.execv(agent, [str(agent), "simulate", *context.args])  # noqa: S606 - our own program, and no shell


@tokens.command("create")
def create_token(
    role: Annotated[Role, typer.Argument(help="What the token is for.")],
    name: Annotated[str, typer.Option(help="A name for people.")] = "made on the command line",
) -> None:
    """Make a token and print it: it is shown this once."""

    async def run() -> None:
        async with open_database(_settings()) as database:
            tenant_id = await default_tenant(database)
            async with database.transaction() as tx:
                token = await issue_token(tx, tenant_id, role, name)
        typer.echo(token)

    _run(run())


@tokens.command("list")
def show_tokens() -> None:
    """List the tokens, without their texts, which are not kept."""
    settings = _existing()

    async def run() -> None:
        async with open_database(settings) as database:
            tenant_id = await default_tenant(database)
            async with database.transaction() as tx:
                rows = await list_tokens(tx, tenant_id)
        for row in rows:  # plain lines: an id is there to be copied, and a narrow table would cut it
            revoked = f"revoked {row.revoked_at:%F %R}" if row.revoked_at else "valid"
            typer.echo(f"{row.id}  {row.role:<8}  made {row.created_at:%F %R}  {revoked}  {row.name}")

    _run(run())


@tokens.command("revoke")
def revoke(token_id: Annotated[str, typer.Argument(help="The token's id, from `token list`.")]) -> None:
    """Revoke a token."""
    settings = _existing()

    async def run() -> bool:
        async with open_database(settings) as database:
            tenant_id = await default_tenant(database)
            async with database.transaction() as tx:
                return await revoke_token(tx, tenant_id, TokenId(token_id))

    if not _run(run()):
        _fail(f"there is no token {token_id} to revoke")


def _existing() -> Settings:
    """Return the settings of an installation that is there: a mistyped folder must not become a new, empty one."""
    settings = _settings()
    if not settings.database_url and not settings.data_dir.is_dir():
        _fail(
            f"there is no data in {settings.data_dir.absolute()}: run this in the checkout, or set FLEETGRAPH_DATA_DIR"
        )
    return settings


def _settings() -> Settings:
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        variable = name if name.isupper() else f"FLEETGRAPH_{name.upper()}"
        _fail(f"{variable}={first['input']!s}: {first['msg']}")
    configure_logging(settings.log_level)
    return settings


def _run(work: Awaitable[object]) -> object:
    """Run to the end; what a person can put right is one line, not a traceback."""

    async def awaited() -> object:
        return await work

    wrong = ""
    look_less_often()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(awaited())
    except* _EXPECTED as group:
        error = _first(group)
        wrong = "; ".join(str(error).splitlines()) if isinstance(error, asyncpg.PostgresError) else str(error)
        wrong = wrong or type(error).__name__
    return _fail(wrong)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _fail(message: str) -> NoReturn:
    Console(stderr=True, highlight=False).print(f"[red]fleetgraph:[/red] {escape(message)}", soft_wrap=True)
    raise typer.Exit(1)
