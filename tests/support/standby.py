"""A streaming standby of a real primary, made by PostgreSQL's own programs."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from db.embedded import EmbeddedPostgres
from db.embedded.cluster import PORT, SUPERUSER
from db.embedded.programs import account_for
from db.embedded.server import UNPRIVILEGED_USER

_COPY_SECONDS_MAX = 60.0


class Standby:
    """A standby in `base`, which runs as the user that its primary runs as."""

    def __init__(self, base: Path, primary: EmbeddedPostgres, settings: Mapping[str, str]) -> None:
        base.mkdir()
        self._server = EmbeddedPostgres(base, {"hot_standby": "on", **settings})
        self._cluster = self._server._cluster
        data = self._cluster.data
        data.mkdir(mode=0o700)
        if account := account_for(data, unprivileged_user=UNPRIVILEGED_USER):
            os.chown(data, account.uid, account.gid)
        options = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        address = ["-h", str(primary._cluster.data), "-p", str(PORT), "-U", SUPERUSER]
        status = self._cluster._run("pg_basebackup", data, *options, *address, seconds_max=_COPY_SECONDS_MAX)
        if status != 0:
            raise self._cluster._error(f"pg_basebackup failed (exit status {status})")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._cluster.ensure_running()

    def stop(self) -> None:
        """Stop it, if it runs."""
        self._cluster.stop()

    def kill(self) -> None:
        """Kill it as if its machine had lost its power, and wait until it is gone."""
        processes = self._processes()
        for process in processes:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(processes, timeout=10)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Keep it from doing anything while the block lasts: its connections stay, and nothing answers."""
        processes = self._processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # a backend whose client left meanwhile
                process.suspend()
        try:
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def dsn(self, database: str) -> str:
        """Return the URL of its copy of a database."""
        return self._server.dsn(database)

    def _processes(self) -> list[psutil.Process]:
        pid = self._cluster._pid()
        assert pid is not None, "the standby does not run"
        server = psutil.Process(pid)
        return [server, *server.children(recursive=True)]
