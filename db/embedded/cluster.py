"""One database cluster on disk and the server on it: made, started, found and stopped, never by two at a time."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from db.embedded import crash
from db.embedded.binaries import client_programs, server_programs
from db.embedded.errors import EmbeddedPostgresError
from db.embedded.programs import account_for, exit_status, reaches, rotate, tail

SUPERUSER: Final = "postgres"
PORT: Final = 5432
"""No TCP port is opened: the number is only part of the socket's name."""
SOCKET: Final = f".s.PGSQL.{PORT}"
START_SECONDS_MAX: Final = 300
"""Recovery after a crash replays up to max_wal_size of log before the server answers."""
STOP_SECONDS_MAX: Final = 60

SETTINGS: Final[Mapping[str, str]] = {
    "shared_buffers": "256MB",
    "max_connections": "200",
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A statement's error goes to the client, who logs it: this log stays small and free of data.
    "log_min_messages": "log",
    "log_checkpoints": "off",
}
"""A small server's. The caller's settings go over these, PRIVATE over both."""

PRIVATE: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "port": str(PORT),
    # The data directory, which only its owner may enter; so whoever reaches the socket may connect.
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
}

_FD_DIRECTORY = Path("/proc/self/fd")
_PROBE_SECONDS: Final = 3
_PROGRAM_SECONDS_MAX: Final = 120
_POLL_SECONDS: Final = 0.05
_ACCEPTING: Final = 0
_SILENT: Final = 2


class Cluster:
    """The cluster in `base`/data. Nothing here guards against a second caller: that is for who calls it."""

    def __init__(self, base: Path, settings: Mapping[str, str], unprivileged_user: str) -> None:
        self.data = base / "data"
        self._base = base
        self._log = base / "postgres.log"
        self._unprivileged_user = unprivileged_user
        self._name = f"fleetgraph-{hashlib.sha256(os.path.realpath(self.data).encode()).hexdigest()[:16]}"
        self._settings = {**SETTINGS, **settings, **PRIVATE, "cluster_name": self._name}

    def ensure_running(self) -> None:
        """Return when a server accepts connections: the one that runs, or a new one on new or old data."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while (answer := self._probe()) != _ACCEPTING:
            if time.monotonic() > deadline:
                raise self._error(f"PostgreSQL (process {self._pid()}) accepts no connection for {START_SECONDS_MAX} s")
            # Neither a listener nor a process: both are asked, as the server may run in another container.
            if answer == _SILENT and self._pid() is None:
                self._start()
            else:
                time.sleep(_POLL_SECONDS)

    def ensure_database(self, database: str) -> None:
        """Create a database unless it exists."""
        script = f"""select 'create database "{database}"'
            where not exists (select from pg_database where datname = '{database}') \\gexec"""  # noqa: S608 - our name
        psql = (client_programs() / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1")
        with self._appended_log() as log:
            status = exit_status(
                *psql, *self._address(), account=None, output=log, seconds_max=_PROGRAM_SECONDS_MAX, text=script
            )
        if status != 0:
            raise self._error(f"psql failed (exit status {status})")

    def stop(self) -> None:
        """Stop the server, if one runs: cut every session, and if that is not enough, as in a crash."""
        if self._pid() is None:
            return
        for mode in ("fast", "immediate"):
            if self._pg_ctl("stop", "-m", mode, seconds_max=STOP_SECONDS_MAX) == 0:
                return
        raise self._error(f"PostgreSQL (process {self._pid()}) does not stop")

    def _start(self) -> None:
        rotate(self._log)
        if not self.data.exists():
            self._make()
        crash.clear(self.data, self._name, SOCKET)
        options = shlex.join(word for key, value in self._settings.items() for word in ("-c", f"{key}={value}"))
        status = self._pg_ctl("start", "-o", options, seconds_max=START_SECONDS_MAX)
        # A starter that was killed may have left one on its way, which was first.
        if status != 0 and self._pid() is None:
            raise self._error(f"PostgreSQL did not start (pg_ctl: exit status {status})")

    def _make(self) -> None:
        # Aside, then renamed: what a killed process leaves behind is never taken for a cluster. The name is new each
        # time because an initdb that outlived its parent may still write to the last one.
        for left_over in self._base.glob("data.new.*"):
            shutil.rmtree(left_over, ignore_errors=True)
        aside = Path(tempfile.mkdtemp(prefix="data.new.", dir=self._base))
        if account := account_for(self.data, unprivileged_user=self._unprivileged_user):
            os.chown(aside, account.uid, account.gid)
        options = ["--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
        status = self._run("initdb", aside, "-U", SUPERUSER, *options, seconds_max=_PROGRAM_SECONDS_MAX)
        if status != 0:
            raise self._error(f"initdb failed (exit status {status})")
        aside.rename(self.data)

    def _pg_ctl(self, action: str, *options: str, seconds_max: int) -> int:
        wait = ["-w", "-t", str(seconds_max)]
        return self._run("pg_ctl", self.data, *wait, *options, action, seconds_max=seconds_max + 10)

    def _run(self, program: str, directory: Path, *arguments: str, seconds_max: float) -> int:
        """Run one of the server's own programs on a data directory and return its exit status."""
        account = account_for(self.data, unprivileged_user=self._unprivileged_user)
        if account and not _FD_DIRECTORY.is_dir() and not reaches(account, self._base):
            raise EmbeddedPostgresError(
                f"PostgreSQL does not run as root, and user {account.uid} may not enter {self._base} or a parent: "
                "set FLEETGRAPH_DATA_DIR to a folder that every user can reach, or DATABASE_URL to a PostgreSQL server"
            )
        programs = server_programs(self._base, account)
        with _opened(directory) as (name, fds), self._appended_log() as log:
            return exit_status(
                programs / program,
                "-D",
                name,
                *arguments,
                account=account,
                output=log,
                seconds_max=seconds_max,
                pass_fds=fds,
            )

    def _probe(self) -> int:
        pg_isready = (client_programs() / "pg_isready", "-t", str(_PROBE_SECONDS))
        return exit_status(
            *pg_isready, *self._address(), account=None, output=subprocess.DEVNULL, seconds_max=_PROBE_SECONDS + 7
        )

    def _address(self) -> tuple[str, ...]:
        return ("-h", str(self.data), "-p", str(PORT), "-U", SUPERUSER, "-d", "postgres")

    def _pid(self) -> int | None:
        return crash.server_pid(self.data, self._name)

    def _error(self, what: str) -> EmbeddedPostgresError:
        return EmbeddedPostgresError(f"{what}; {self._log} ends:\n{tail(self._log)}")

    @contextmanager
    def _appended_log(self) -> Iterator[int]:
        descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _opened(directory: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give a directory's name for PostgreSQL's programs, and the descriptors that they must inherit for it.

    We open the directory, and the name says "that descriptor". So the user whom root becomes needs no way through
    its parents (a checkout under /root stays closed, and the data stays in the checkout), and no name needs quoting
    (pg_ctl puts it into a shell command). The server enters the directory once and uses relative names from then on;
    its configuration it finds again through the descriptor, which its children inherit.
    """
    if not _FD_DIRECTORY.is_dir():
        yield str(directory), ()
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_FD_DIRECTORY}/{descriptor}", (descriptor,)
    finally:
        os.close(descriptor)
