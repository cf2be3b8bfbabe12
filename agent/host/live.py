"""The live host: its files, and the facts that only a call to the kernel gives."""

import errno
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from agent.host import ethtool
from agent.host.answers import Cause, Missing, of_error
from agent.host.deadline import Probes, TimedOut
from agent.host.files import Fact, TreeSource, Value
from agent.host.packages import installed_versions, version_of

FACT_SECONDS_MAX: Final = 3.0
TREE_SECONDS_MAX: Final = 10.0
TREE_FILES_MAX: Final = 100_000
_DPKG_STATUS: Final = Path("/var/lib/dpkg/status")
_DPKG_STATUS_BYTES_MAX: Final = 256 * 1024 * 1024
_RECORD_BYTES_MAX: Final = 64 * 1024
_ENVIRONMENT_BYTES_MAX: Final = 4 * 1024 * 1024


class LiveAsker:
    """Asks the kernel, every question in a thread of its own and with a deadline."""

    def __init__(self) -> None:
        self._probes = Probes()

    def __call__(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Answer the fact for each argument, all at once."""
        names = tuple(arguments)
        if fact is Fact.PACKAGE_VERSION:
            return _package_versions(names)
        seconds_max = TREE_SECONDS_MAX if fact is Fact.TREE_BYTES else FACT_SECONDS_MAX
        function = _FUNCTIONS[fact]
        outcomes = self._probes.run_all({_place(fact, name): partial(function, name) for name in names}, seconds_max)
        return {name: _answer(_place(fact, name), outcomes[_place(fact, name)]) for name in names}


def live_source() -> TreeSource:
    """Return the host this process runs on."""
    return TreeSource(Path("/"), LiveAsker())


def _place(fact: Fact, argument: str) -> str:
    """Name the question; a path speaks for itself when opening it is the question."""
    opens = fact in {Fact.READS, Fact.OPENS_READ_WRITE}
    return argument if opens else f"{fact.replace('_', ' ')} {argument}".rstrip()


def _answer(place: str, outcome: Value | Missing | BaseException) -> Value | Missing:
    match outcome:
        case TimedOut():
            return Missing(Cause.TIMED_OUT, str(outcome))
        case OSError():
            return of_error(place, outcome)
        case BaseException():
            raise outcome
        case _:
            return outcome


def _filesystem_bytes(mount: str) -> int:
    figures = os.statvfs(mount)
    return figures.f_blocks * figures.f_frsize


def _tree_bytes(path: str) -> int | Missing:
    total = os.lstat(path).st_size if not os.path.isdir(path) else 0  # noqa: PTH112 - one call, no Path needed
    files = 0
    for folder, _, names in os.walk(path):
        for name in names:
            files += 1
            if files > TREE_FILES_MAX:
                return Missing(Cause.TOO_LARGE, f"{path}: more than {TREE_FILES_MAX} files")
            total += _file_bytes(os.path.join(folder, name))  # noqa: PTH118 - as above, per file
    return total


def _file_bytes(path: str) -> int:
    try:
        # Links are counted as links: a model cache links its snapshots to blobs that the walk meets anyway.
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0  # removed during the walk


def _opens(flags: int, path: str) -> bool:
    # Opened for real: access(2) knows nothing of a container's device rules or of dmesg_restrict.
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))
    return True


def _reads(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.read(descriptor, _RECORD_BYTES_MAX)
    except BlockingIOError:
        pass  # nothing new
    except OSError as error:
        if error.errno != errno.EPIPE:  # overrun between the two calls
            raise
    finally:
        os.close(descriptor)
    return True


def _container_variable(_: str) -> str:
    with open("/proc/1/environ", "rb") as file:  # noqa: PTH123 - Path.open says nothing more
        entries = file.read(_ENVIRONMENT_BYTES_MAX).split(b"\0")
    values = (entry.removeprefix(b"container=") for entry in entries if entry.startswith(b"container="))
    return next(values, b"").decode("utf-8", "replace")


def _package_versions(names: tuple[str, ...]) -> dict[str, Value | Missing]:
    try:
        if _DPKG_STATUS.stat().st_size > _DPKG_STATUS_BYTES_MAX:
            return dict.fromkeys(names, Missing(Cause.TOO_LARGE, f"{_DPKG_STATUS} is too large to read"))
        with _DPKG_STATUS.open(encoding="utf-8", errors="replace") as lines:
            versions = installed_versions(lines)
    except OSError as error:
        return dict.fromkeys(names, of_error(str(_DPKG_STATUS), error))
    return {name: version_of(name, versions) for name in names}


_FUNCTIONS: Final[Mapping[Fact, Callable[[str], Value | Missing]]] = {
    Fact.MACHINE: lambda _: platform.machine(),
    Fact.FILESYSTEM_BYTES: _filesystem_bytes,
    Fact.TREE_BYTES: _tree_bytes,
    Fact.PERMANENT_MAC: ethtool.permanent_address,
    Fact.NIC_FIRMWARE: ethtool.firmware_version,
    Fact.VF_MACS: ethtool.vf_macs,
    Fact.READS: _reads,
    Fact.OPENS_READ_WRITE: partial(_opens, os.O_RDWR),
    Fact.CONTAINER_VARIABLE: _container_variable,
}
