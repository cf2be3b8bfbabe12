"""What is logged, on a terminal and elsewhere, never holds a token."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator

import pytest
import structlog

from agent.logs import configure_logs
from web.logging import configure_logging

TOKEN = "made-up-secret"  # noqa: S105 - nobody's


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def configuration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the tests' own configuration of both kinds of logs."""
    before = structlog.get_config()
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    yield
    structlog.configure(**before)


def fail_with_a_token() -> None:
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    raise ValueError(f"{len(headers)} header refused")


def log_by_structlog() -> None:
    try:
        fail_with_a_token()
    except ValueError:
        structlog.get_logger("made for this test").exception("it failed")


def log_by_a_library() -> None:
    try:
        fail_with_a_token()
    except ValueError:
        logging.getLogger("uvicorn.error").exception("it failed")


def configure_server() -> None:
    configure_logging("info")


@pytest.mark.parametrize("stream", [Terminal, io.StringIO], ids=["terminal", "file"])
@pytest.mark.parametrize(
    ("configure", "log"),
    [(configure_server, log_by_structlog), (configure_server, log_by_a_library), (configure_logs, log_by_structlog)],
    ids=["server", "library in the server", "agent"],
)
def test_traceback_has_no_token_of_a_local_variable(
    monkeypatch: pytest.MonkeyPatch,
    stream: Callable[[], io.StringIO],
    configure: Callable[[], None],
    log: Callable[[], None],
) -> None:
    output = stream()
    monkeypatch.setattr(sys, "stderr", output)
    configure()
    log()
    text = output.getvalue()
    assert "it failed" in text
    assert "fail_with_a_token" in text
    assert "1 header refused" in text
    assert TOKEN not in text


def test_a_file_gets_one_json_object_per_line(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    configure_server()
    log_by_structlog()
    log_by_a_library()
    entries = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [(entry["message"], entry["level"]) for entry in entries] == [("it failed", "error")] * 2
