"""A PostgreSQL server of one's own, shared by the processes that use it."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, urlencode

from db.embedded.cluster import PORT, SOCKET, START_SECONDS_MAX, STOP_SECONDS_MAX, SUPERUSER, Cluster
from db.embedded.errors import EmbeddedPostgresError
from db.embedded.locks import Membership, exclusive

DATABASE: Final = "fleetgraph"
UNPRIVILEGED_USER: Final = "nobody"
SOCKET_PATH_BYTES_MAX: Final = 107 if sys.platform == "linux" else 103
"""sizeof(sockaddr_un.sun_path) less its final NUL: unix(7)."""

# The longest turn of another process: it waits for a server that starts, starts it itself and, failing, stops it.
_TURN_SECONDS_MAX: Final = 2 * START_SECONDS_MAX + 3 * STOP_SECONDS_MAX
_ELSEWHERE: Final = "set FLEETGRAPH_DATA_DIR to another folder, or DATABASE_URL to a PostgreSQL server"
_NO_SETTINGS: Final[Mapping[str, str]] = {}


class EmbeddedPostgres:
    """One process's part in the server on `base`, e.g. `.fleetgraph/postgres`.

    `settings` go over `cluster.SETTINGS` in the process that really starts the server; who joins leaves it as it is.
    Started by root, it runs as the owner of the data, at first `unprivileged_user`.
    """

    def __init__(
        self,
        base: Path,
        settings: Mapping[str, str] = _NO_SETTINGS,
        *,
        unprivileged_user: str = UNPRIVILEGED_USER,
    ) -> None:
        self._base = Path(os.path.abspath(base))  # noqa: PTH100 - a short link to a long path stays short
        self._cluster = Cluster(self._base, settings, unprivileged_user)
        self._membership: Membership | None = None

    def start(self) -> str:
        """Start the server or join it, and return the DSN of its database `fleetgraph`.

        Blocks: about a second the first time, minutes at most after a crash. Raises EmbeddedPostgresError.
        """
        self._check_path()
        if self._membership is None:
            with self._turn():
                self._join()
        return self.dsn(DATABASE)

    def stop(self) -> None:
        """Leave the server; the last to leave stops it. Raises EmbeddedPostgresError when it does not stop."""
        if self._membership is not None:
            with self._turn():
                self._leave()

    def dsn(self, database: str) -> str:
        """Return the URL of a database on this server, for libpq and asyncpg."""
        # The port, too: it names the socket, and PGPORT in the environment would change it.
        query = urlencode({"host": str(self._cluster.data), "port": PORT}, quote_via=quote, safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?{query}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            self._base.mkdir(parents=True, exist_ok=True)
            with exclusive(self._base / "turn.lock", seconds_max=_TURN_SECONDS_MAX):
                yield
        except OSError as error:
            raise EmbeddedPostgresError(f"PostgreSQL cannot run in {self._base}: {error}; {_ELSEWHERE}") from error

    def _join(self) -> None:
        self._membership = Membership(self._base / "users.lock")
        try:
            self._cluster.ensure_running()
            self._cluster.ensure_database(DATABASE)
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        membership, self._membership = self._membership, None
        if membership is None:
            return
        try:
            if membership.is_last():
                self._cluster.stop()
        finally:
            membership.leave()

    def _check_path(self) -> None:
        socket = self._cluster.data / SOCKET
        length = len(os.fsencode(socket))
        if length > SOCKET_PATH_BYTES_MAX:
            raise EmbeddedPostgresError(
                f"{socket} is {length} bytes long, and the path of a Unix socket has {SOCKET_PATH_BYTES_MAX} at most: "
                f"{_ELSEWHERE}"
            )
        if "," in str(socket):
            raise EmbeddedPostgresError(
                f"{socket} has a comma, which separates hosts in a PostgreSQL URL: {_ELSEWHERE}"
            )
