"""Locks between processes, which the kernel drops when their holder dies, even by SIGKILL."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from db.embedded.errors import EmbeddedPostgresError

_POLL_SECONDS: Final = 0.02


@contextmanager
def exclusive(path: Path, *, seconds_max: float) -> Iterator[None]:
    """Hold `path` (made when missing) alone; raises EmbeddedPostgresError when others keep it for `seconds_max`."""
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + seconds_max
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"another process has held {path} for more than {seconds_max:g} s")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


class Membership:
    """A share of `path`, held until `leave`. Joining and leaving must not overlap: do both under one `exclusive`."""

    def __init__(self, path: Path) -> None:
        self._descriptor = _open(path)
        if not _try(self._descriptor, fcntl.LOCK_SH):
            os.close(self._descriptor)
            raise EmbeddedPostgresError(f"{path} is locked by a program that is not ours")

    def is_last(self) -> bool:
        """Tell whether nobody else holds a share, dead processes not counted."""
        return _try(self._descriptor, fcntl.LOCK_EX)

    def leave(self) -> None:
        """Give the share back."""
        os.close(self._descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
