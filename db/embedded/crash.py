"""What a server that died leaves behind, and what it cannot be mistaken for."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from db.embedded.errors import EmbeddedPostgresError

_PID_FILE: Final = "postmaster.pid"
_END_SECONDS_MAX: Final = 10
_POLL_SECONDS: Final = 0.02


def server_pid(data: Path, name: str) -> int | None:
    """Return the process of the server on `data` whose `cluster_name` is `name`, None when it is not running.

    The name is in the command line, which every user can read; a pid alone may have come to mean another program.
    """
    try:
        pid = int((data / _PID_FILE).read_text().split("\n", 1)[0])
        command = psutil.Process(pid).cmdline()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if f"cluster_name={name}" in command else None


def clear(data: Path, name: str, socket: str) -> None:
    """Remove what keeps a new server off `data`; call only while `server_pid` is None and nobody starts one.

    PostgreSQL takes a lock file for valid when its user has any process with that pid, be it a zombie.
    """
    left_over = [data / _PID_FILE, data / f"{socket}.lock", data / socket]
    if not any(path.exists() for path in left_over):
        return
    # A session may outlive its server while it computes, and PostgreSQL refuses to start beside it. To kill it loses
    # nothing more: its server is dead, and what was committed is in the write-ahead log.
    sessions = [process for process in psutil.process_iter() if _is_session(process, name)]
    for session in sessions:
        with suppress(psutil.NoSuchProcess):
            session.kill()
    deadline = time.monotonic() + _END_SECONDS_MAX
    # Not until they are gone: in a container whose first process reaps nobody they stay, as zombies.
    while any(_is_session(session, name) for session in sessions):
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(f"sessions of a dead server on {data} do not end: {sessions}")
        time.sleep(_POLL_SECONDS)
    for path in left_over:
        path.unlink(missing_ok=True)


def _is_session(process: psutil.Process, name: str) -> bool:
    try:
        # One word or several: a title overwrites the arguments.
        return " ".join(process.cmdline()).startswith(f"postgres: {name}:")
    except psutil.Error:
        return False
