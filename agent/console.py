"""What the commands show and how they end."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from agent.failures import AgentFailure, WronglyCalled


@contextmanager
def one_line_failures() -> Iterator[None]:
    """End the command for what is no bug: one line, with status 1 for what failed and 2 for what was asked wrongly."""
    try:
        yield
    except WronglyCalled as wrong:
        raise typer.BadParameter(str(wrong)) from wrong
    except AgentFailure as failure:
        typer.echo(f"fleetgraph-agent: {failure}", err=True)
        raise typer.Exit(1) from failure
