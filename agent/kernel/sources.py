"""Where the records of a kernel log come from: the kernel's device, or a file, or a file or FIFO that grows."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

from domain.kernel_log import LINE_LENGTH_MAX

KMSG: Final = "/dev/kmsg"
RECORDS_MAX: Final = 256
"""Records of one read, so that others get their turn while a long log is read."""
UNFINISHED_SECONDS: Final = 2.0
_CHUNK_BYTES: Final = 64 * 1024
_LINE_BYTES_MAX: Final = 4 * LINE_LENGTH_MAX
_REASONS: Final = {
    errno.ENOENT: "it does not exist; a container needs it mounted",
    errno.EACCES: "permission denied: run as root or give CAP_SYSLOG",
    errno.EPERM: "not permitted: run as root or give CAP_SYSLOG",
    errno.EINVAL: "the kernel refuses to read it",
    errno.ENODEV: "the kernel has no log",
    errno.ENXIO: "the kernel has no log",
}


class Records(Protocol):
    """A log that is followed."""

    def read(self) -> tuple[str, ...]:
        """Return the next records, none when there are none now; never waits. Raises OSError."""

    def close(self) -> None:
        """Let go of it."""


def records_of(path: str) -> Records:
    """Return the log at a path: a device is read record by record, anything else line by line."""
    try:
        is_device = stat.S_ISCHR(os.stat(path).st_mode)  # noqa: PTH116 - a text that is shown as it was given
    except OSError:
        is_device = path == KMSG
    return Device(path) if is_device else Lines(Path(path))


def reason_of(path: str, error: OSError) -> str:
    """Say why a log cannot be read, and what would help."""
    return f"{path}: {_REASONS.get(error.errno or 0) or error.strerror or error}"


class Device:
    """/dev/kmsg: one record a read, from the oldest that the kernel still has."""

    def __init__(self, path: str = KMSG) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> tuple[str, ...]:
        """Read what there is. Records that the kernel overwrote meanwhile show in the numbers of those that follow."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found: list[str] = []
        for _ in range(RECORDS_MAX):
            try:
                content = os.read(self._descriptor, _CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue
                self.close()
                raise
            if not content:
                break
            found.append(content.decode("utf-8", "replace"))
        return tuple(found)

    def close(self) -> None:
        """Close the device; the next read begins with the oldest record again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Lines:
    """A file or FIFO with a line for each record, also while it grows, is cut to nothing or is replaced."""

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._descriptor: int | None = None
        self._unfinished = b""
        self._grew_at = 0.0

    def read(self) -> tuple[str, ...]:
        """Read the lines that have come; one that nobody ends for two seconds is taken as it is."""
        if self._descriptor is None:
            # Without O_NONBLOCK opening a FIFO that nobody writes to would hang.
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            content = b""
        except OSError:
            self.close()
            raise
        if content:
            self._grew_at = self._clock()
            return self._ended(content)
        ended = self._begins_anew(self._descriptor) or self._clock() - self._grew_at >= UNFINISHED_SECONDS
        return self._ended(b"\n") if ended and self._unfinished else ()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _ended(self, content: bytes) -> tuple[str, ...]:
        *lines, rest = (self._unfinished + content).split(b"\n")
        # Of a line without an end its start is held.
        self._unfinished = rest[:_LINE_BYTES_MAX]
        return tuple(line.decode("utf-8", "replace").rstrip("\r") for line in lines if line)

    def _begins_anew(self, descriptor: int) -> bool:
        """Go to the start of a file that was cut, or of another one by this name."""
        was = os.fstat(descriptor)
        if not stat.S_ISREG(was.st_mode):
            return False
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False  # between the old one and the new one
        if (now.st_dev, now.st_ino) != (was.st_dev, was.st_ino):
            self.close()
            return True
        if now.st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
            os.lseek(descriptor, 0, os.SEEK_SET)
            return True
        return False
