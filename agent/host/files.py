"""Where facts are read from: the live host or a captured folder, behind one protocol."""

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from agent.host.answers import Cause, Missing, known, of_error

READ_BYTES_MAX: Final = 64 * 1024
LARGE_READ_BYTES_MAX: Final = 16 * 1024 * 1024
"""For /proc/cpuinfo and mountinfo: 1,024 threads take about 5 MiB."""
ENTRIES_MAX: Final = 65_536


class Fact(StrEnum):
    """A fact that no file holds; it is asked of the kernel about an argument."""

    MACHINE = "machine"
    """Architecture (`x86_64`); the argument is empty."""
    FILESYSTEM_BYTES = "filesystem_bytes"
    """Size by statvfs of a mount point."""
    TREE_BYTES = "tree_bytes"
    """Sum of the file sizes of a file or folder."""
    PERMANENT_MAC = "permanent_mac"
    """ETHTOOL_GPERMADDR of an interface, as colon-separated bytes."""
    NIC_FIRMWARE = "nic_firmware"
    """Firmware version in ETHTOOL_GDRVINFO of an interface."""
    VF_MACS = "vf_macs"
    """`0=52:54:00:…,1=…`: the MACs that the interface's administrator gave its virtual functions."""
    READS = "reads"
    """Whether this process may open a log and read from it; one without anything new may be read."""
    OPENS_READ_WRITE = "opens_read_write"
    CONTAINER_VARIABLE = "container_variable"
    """`container=` in the environment of process 1. The environment itself holds secrets and is never kept."""
    PACKAGE_VERSION = "package_version"
    """Version of an installed Debian package; an empty text when it is not installed."""


Value = str | int | bool


class Source(Protocol):
    """A host to read: every path is absolute, every answer is bounded, and none of the calls raises OSError."""

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        """Return the content; Missing (too_large) beyond `limit` bytes."""

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        """Return the names in a folder, sorted."""

    def link(self, path: str) -> str | Missing:
        """Return the target of a symbolic link as it is written."""

    def exists(self, path: str) -> bool:
        """Say whether the path can be seen."""

    def ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Answer a fact for each argument; they are asked at once and share one deadline."""


class Asker(Protocol):
    """Whoever answers the facts of a host that no file holds."""

    def __call__(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Answer a fact for each argument."""


class TreeSource:
    """Files under a root; the facts that no file holds come from `asker`."""

    def __init__(self, root: Path, asker: Asker) -> None:
        self._root = os.fspath(root).rstrip("/")
        self._asker = asker

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        """Read until the end of the file, as files of /proc and /sys have no size."""
        try:
            # Without O_NONBLOCK opening a pipe that nobody writes to would hang.
            descriptor = os.open(self._root + path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor, not a path
                return _read_bounded(file.fileno(), path, limit)
        except OSError as error:
            return of_error(path, error)

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        """List the folder."""
        names = []
        try:
            with os.scandir(self._root + path) as folder:
                for entry in folder:
                    names.append(entry.name)
                    if len(names) > ENTRIES_MAX:
                        return Missing(Cause.TOO_LARGE, f"{path}: more than {ENTRIES_MAX} entries")
        except OSError as error:
            return of_error(path, error)
        return tuple(sorted(names))

    def link(self, path: str) -> str | Missing:
        """Read the link."""
        try:
            return os.readlink(self._root + path)  # noqa: PTH115 - a Path would drop what it deems redundant
        except OSError as error:
            return of_error(path, error)

    def exists(self, path: str) -> bool:
        """Look at the path itself, whatever a link points to."""
        return os.path.lexists(self._root + path)

    def ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Hand the question on."""
        return self._asker(fact, arguments)


def _read_bounded(descriptor: int, path: str, limit: int) -> bytes | Missing:
    parts: list[bytes] = []
    left = limit + 1
    while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts) if left > 0 else Missing(Cause.TOO_LARGE, f"{path}: more than {limit} bytes")


def ask_text(source: Source, fact: Fact, argument: str) -> str | Missing:
    """Ask one fact that is a text."""
    answer = source.ask(fact, [argument])[argument]
    return answer if isinstance(answer, Missing) else known(f"{fact} {argument}".rstrip(), str(answer))


def text(source: Source, path: str, limit: int = READ_BYTES_MAX) -> str | Missing:
    """Read a text, which is Missing also when it is blank or only stands for a value."""
    content = raw_text(source, path, limit)
    return content if isinstance(content, Missing) else known(path, content)


def raw_text(source: Source, path: str, limit: int = READ_BYTES_MAX) -> str | Missing:
    """Read a text whose emptiness means something; NULs, which end texts of a device tree, are dropped."""
    content = source.read(path, limit)
    return content if isinstance(content, Missing) else content.decode("utf-8", "replace").replace("\0", "")


def number(source: Source, path: str) -> int | Missing:
    """Read a whole number; a negative one is the kernel's way to say that there is none."""
    content = text(source, path)
    if isinstance(content, Missing):
        return content
    try:
        value = int(content)
    except ValueError:
        return Missing(Cause.FAILED, f"{path} is not a number: {content[:40]!r}")
    return value if value >= 0 else Missing(Cause.ABSENT, f"{path} says {value}: none")


def basename(link: str | Missing) -> str | Missing:
    """Return the last part of a link's target."""
    return link if isinstance(link, Missing) else link.rsplit("/", 1)[-1]


def names_in(source: Source, path: str) -> tuple[str, ...]:
    """List a folder, sorted, where its absence just means that there is nothing of the kind."""
    names = source.entries(path)
    return () if isinstance(names, Missing) else tuple(sorted(names))
