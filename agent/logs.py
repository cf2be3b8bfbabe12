"""Logs go to standard error: for people on a terminal, as JSON lines anywhere else."""

import sys

import structlog
from structlog.typing import Processor


def configure_logs() -> None:
    """Set up structlog for this process."""
    people = sys.stderr.isatty()
    # Tracebacks stay plain: rich ones print local variables, and the token is one.
    tail: list[Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if people
        else [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            structlog.processors.JSONRenderer(),
        ]
    )
    head: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if people else "iso", utc=not people),
    ]
    structlog.configure(processors=[*head, *tail], logger_factory=_to_stderr)


def _to_stderr(*_: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)
