"""The command `simulate`: a made-up fleet at a server, for demonstrations, tests and measurements."""

import asyncio
import math
from contextlib import suppress
from typing import Annotated, Final

import structlog
import typer

from agent.arguments import ServerOption, TokenFileOption, TokenOption, connection
from agent.client import Connection, connect
from agent.console import one_line_failures
from agent.parallel import first_of
from agent.signals import until_signalled
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.progress import meter

_FOREVER: Final = "forever"
_NODES_MAX: Final = 1_000_000

_log = structlog.get_logger(__name__)


def seconds_of(text: str) -> float:
    """Read a duration: a number of seconds, or `forever`; raises BadParameter for anything else."""
    if text == _FOREVER:
        return math.inf
    with suppress(ValueError):
        seconds = float(text)
        if seconds >= 0 and math.isfinite(seconds):
            return seconds
    raise typer.BadParameter(f"{text!r} is neither a number of seconds nor {_FOREVER!r}")


def simulate(  # noqa: PLR0913 - each is an option of the command line
    *,
    server: ServerOption,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, max=_NODES_MAX, help="Size of the fleet.")] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="The same seed is the same fleet.")] = 1,
    rate: Annotated[
        float,
        typer.Option("--rate", metavar="CHANGES", min=0, max=1000, help="Changes a second, over the whole fleet."),
    ] = 1.0,
    duration: Annotated[
        str, typer.Option("--duration", metavar="SECONDS", help="How long the fleet then lives: seconds, or `forever`.")
    ] = _FOREVER,
    once: Annotated[bool, typer.Option("--once", help="Leave when the whole fleet is applied.")] = False,
) -> None:
    """Report a made-up fleet, and let things happen to it: faults, replacements, upgrades, restarts."""
    with one_line_failures():
        target = connection(server, token, token_file)
        seconds = 0.0 if once else seconds_of(duration)
        ended = asyncio.run(_simulate(target, seed, nodes, rate, seconds))
    if not ended:
        typer.echo("stopped", err=True)


async def _simulate(target: Connection, seed: int, nodes: int, rate: float, seconds: float) -> bool:
    async with connect(target) as client:
        return await until_signalled(_story(Fleet(client, seed, nodes, Pace()), nodes, rate, seconds))


async def _story(fleet: Fleet, nodes: int, rate: float, seconds: float) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            # From the start: a large fleet takes longer to report than a session's lease.
            alive = group.create_task(fleet.keep_alive())
            with meter(nodes) as progress:
                summary = await fleet.report(progress)
            typer.echo(str(summary))
            if seconds > 0:
                _log.info(
                    "the fleet lives",
                    changes_per_second=rate,
                    for_seconds=seconds if math.isfinite(seconds) else _FOREVER,
                )
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await fleet.change(rate)
            alive.cancel()
    except ExceptionGroup as failures:
        raise first_of(failures) from failures
