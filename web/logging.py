"""Logs: for people on a terminal, JSON elsewhere; never a token."""

import logging
import sys
from typing import Final

import structlog

_SHARED: Final = (
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def configure_logging(level: str) -> None:
    """Send structured logs, and the libraries' own, to standard error."""
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    terminal = sys.stderr.isatty()
    # Tracebacks stay plain: rich ones print local variables, and a request's token is one.
    people = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    renderer = people if terminal else structlog.processors.JSONRenderer()
    machine = (structlog.processors.format_exc_info, structlog.processors.EventRenamer("message"))
    traceback = () if terminal else machine
    structlog.configure(
        processors=[*_SHARED, *traceback, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *traceback, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING), force=True)
