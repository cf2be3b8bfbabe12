"""The command `simulate`: a made-up fleet at a server, for demonstrations, tests and measurements."""

import asyncio
import math
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

import structlog
import typer

from agent.arguments import ServerOption, TokenFileOption, TokenOption, connection
from agent.client import Connection, connected
from agent.console import one_line_failures
from agent.parallel import first_of
from agent.signals import until_signalled
from agent.simulator.client import FleetClient
from agent.simulator.commands import Commands
from agent.simulator.demo import Demo
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.operator import Operator
from agent.simulator.plot import NODES_MIN, cast_of
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
    operator_token_file: Annotated[
        Path | None,
        typer.Option(
            "--demo-operator-token-file",
            metavar="FILE",
            help=f"Play the demo's plot ({NODES_MIN} nodes or more); its operator's token is in this file.",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Leave when the whole fleet is applied.")] = False,
) -> None:
    """Report a made-up fleet, and let things happen to it: faults, replacements, upgrades, restarts."""
    with one_line_failures():
        target = connection(server, token, token_file)
        if operator_token_file is not None and nodes < NODES_MIN:
            raise typer.BadParameter(f"the demo's plot needs {NODES_MIN} nodes")
        operator = None if operator_token_file is None else connection(server, None, operator_token_file)
        life = Life(seed, nodes, rate, 0.0 if once else seconds_of(duration))
        ended = asyncio.run(_simulate(target, operator, life))
    if not ended:
        typer.echo("stopped", err=True)


@dataclass(frozen=True, slots=True)
class Life:
    """Which fleet it is, how many changes a second it sees, and for how many seconds."""

    seed: int
    nodes: int
    rate: float
    seconds: float


async def _simulate(target: Connection, operator: Connection | None, life: Life) -> bool:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(FleetClient, target))
        if operator is None:
            return await until_signalled(_story(client, None, life))
        speaking = await stack.enter_async_context(connected(Operator, operator))
        return await until_signalled(_story(client, speaking, life))


async def _story(client: FleetClient, operator: Operator | None, life: Life) -> None:
    pace = Pace()
    fleet = Fleet(client, life.seed, life.nodes, pace, run=uuid4().hex)
    cast = cast_of(life.nodes)
    try:
        async with asyncio.TaskGroup() as group:
            # From the start: a large fleet takes longer to report than a session's lease.
            tasks = [group.create_task(fleet.keep_alive())]
            with meter(life.nodes) as progress:
                summary = await fleet.report(progress)
            typer.echo(str(summary))
            if life.seconds > 0:
                tasks.append(group.create_task(Commands(client, fleet, pace).run()))
                if operator is not None:
                    demo = Demo(fleet, operator, cast, pace, lambda line: typer.echo(f"demo: {line}"))
                    tasks.append(group.create_task(demo.run()))
                await _live(fleet, life, life.nodes if operator is None else cast.by_chance)
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failures:
        raise first_of(failures) from failures


async def _live(fleet: Fleet, life: Life, changing: int) -> None:
    forever = not math.isfinite(life.seconds)
    _log.info("the fleet lives", changes_per_second=life.rate, for_seconds=_FOREVER if forever else life.seconds)
    with suppress(TimeoutError):
        async with asyncio.timeout(life.seconds):
            await fleet.change(life.rate, changing)
