"""`make up`: the server, an agent that reports this machine, and for a demo a simulated fleet, as one thing."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, assert_never

import structlog
from rich.console import Console

from domain.access import Role
from web.app import utc_now
from web.first_start import Given, GivenRefused, Known, Made, SignIn, local_token
from web.server import serving, stop_signals
from web.settings import Settings

STOP_SECONDS_MAX: Final = 10
DEMO_NODES: Final = 200
# No live bars (rich's TTY_COMPATIBLE) on a terminal that others write to as well.
_BESIDE: Final = {"PYTHONUNBUFFERED": "1", "TTY_COMPATIBLE": "0"}
_ANOTHER: Final = "another: [bold].venv/bin/fleetgraph token create operator[/]"
_log = structlog.get_logger("up")


async def up(settings: Settings, *, demo: bool) -> None:
    """Run until SIGINT or SIGTERM."""
    token_file = settings.data_dir / "agent.token"
    async with AsyncExitStack() as stack:
        stop = await stack.enter_async_context(stop_signals())
        database, address, sign_in = await stack.enter_async_context(serving(settings, reconcile=True))
        await local_token(database, token_file, Role.AGENT, utc_now())
        greet(address, sign_in)
        reach = ["--server", address, "--token-file", str(token_file)]
        # The agent keeps its state where `fleetgraph-agent once` does: this machine is one node, however it reports.
        await stack.enter_async_context(child("agent", "run", *reach, "--spread", "0", stop=stop))
        if demo:
            operator_file = settings.data_dir / "demo-operator.token"
            await local_token(database, operator_file, Role.OPERATOR, utc_now())
            fleet = ["--nodes", str(DEMO_NODES), "--rate", "0.5", "--demo-operator-token-file", str(operator_file)]
            await stack.enter_async_context(child("simulated fleet", "simulate", *reach, *fleet, stop=stop))
        await stop.wait()
        Console(stderr=True).print("Stopping …")


def greet(address: str, sign_in: SignIn) -> None:
    """Print where the server is and how to sign in; a token that was made is shown this once."""
    say = Console(highlight=False, soft_wrap=True)
    say.print("\nFleetgraph is up.")
    for name, path in (("Console", "/"), ("GraphiQL", "/graphiql"), ("API", "/graphql")):
        say.print(f"  {name:<9} {address}{path}")
    match sign_in:
        case Made(token):
            say.print(f"  Sign in   open [bold]{address}/#token={token}[/]")
            say.print(f"  Token     [bold]{token}[/]  (shown only now; kept hashed)")
        case Given():
            say.print("  Sign in   with the token of FLEETGRAPH_OPERATOR_TOKEN")
        case GivenRefused(reason):
            say.print(f"  Sign in   not with FLEETGRAPH_OPERATOR_TOKEN: {reason}; {_ANOTHER}")
        case Known():
            say.print(f"  Sign in   with your operator token; {_ANOTHER}")
        case _:
            assert_never(sign_in)
    say.print("  Stop      Ctrl-C\n")


@asynccontextmanager
async def child(name: str, *arguments: str, stop: asyncio.Event) -> AsyncIterator[None]:
    """Run a command of the agent's program beside the server; its end is reported, ours ends it."""
    program = Path(sys.executable).with_name("fleetgraph-agent")
    # A session of its own: Ctrl-C reaches it through us, in order, before the server goes.
    process = await asyncio.create_subprocess_exec(
        program, *arguments, start_new_session=True, env={**os.environ, **_BESIDE}
    )

    async def watch() -> None:
        status = await process.wait()
        if not stop.is_set():
            _log.warning("a program beside the server ended; the server goes on", program=name, status=status)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS_MAX)
            except TimeoutError:
                os.killpg(process.pid, signal.SIGKILL)
        await watching
