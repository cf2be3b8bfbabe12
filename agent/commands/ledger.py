"""What the agent has begun and done of its commands, kept over restarts: no command runs twice, no result is lost.

Each note is on the disk before what it says happens. Who finds that a run was begun and never ended knows that it was
cut off, and does not begin again.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agent.state_file import replace_file
from agent.wire import CommandResult

ENTRIES_MAX: Final = 256
"""Far more than a node can have unfinished."""
FILE_BYTES_MAX: Final = 128 * 1024 * 1024
_FILE: Final = "commands.json"

_log = structlog.get_logger(__name__)


class Phase(StrEnum):
    """How far the agent got with a command."""

    STARTING = "starting"
    """The server is about to be told; nothing was run."""
    RUNNING = "running"
    DONE = "done"
    """There is a result, which the server may not have yet."""
    TOLD = "told"


_OVER: Final = frozenset({Phase.STARTING, Phase.TOLD})
"""Nothing was run, or nothing is left to say."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command, how far the agent got, what it calls this run, and in which boot that is."""

    command_id: str
    sequence: int
    kind: str
    phase: Phase
    run_id: str
    boot_id: str | None = None
    result: CommandResult | None = None


class Ledger:
    """The entries, newest last, in a file of their own (0600)."""

    def __init__(self, state_dir: Path) -> None:
        """Read what was kept; a file that cannot be read is as none, and is said."""
        self._file = state_dir / _FILE
        self._entries = {entry.command_id: entry for entry in _read(self._file)}

    def find(self, command_id: str) -> Entry | None:
        """Return what is known of a command."""
        return self._entries.get(command_id)

    def in_phase(self, *phases: Phase) -> tuple[Entry, ...]:
        """Return the entries in any of these phases, by number."""
        found = [entry for entry in self._entries.values() if entry.phase in phases]
        return tuple(sorted(found, key=lambda entry: entry.sequence))

    def note(self, entry: Entry) -> None:
        """Keep an entry; when this returns it outlives a crash. Raises OSError, and then nothing is known of it."""
        entries = {key: kept for key, kept in self._entries.items() if key != entry.command_id}
        over = [key for key, kept in entries.items() if kept.phase in _OVER]
        for key in over[: max(0, len(entries) + 1 - ENTRIES_MAX)]:
            del entries[key]
        entries[entry.command_id] = entry
        self._write(entries.values())
        self._entries = entries

    def forget(self, command_id: str) -> None:
        """Drop an entry of which nothing was run."""
        if command_id in self._entries:
            entries = {key: kept for key, kept in self._entries.items() if key != command_id}
            self._write(entries.values())
            self._entries = entries

    def _write(self, entries: Iterable[Entry]) -> None:
        replace_file(self._file, msgspec.json.encode(list(entries)))


def _read(file: Path) -> tuple[Entry, ...]:
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(FILE_BYTES_MAX), type=tuple[Entry, ...])
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, msgspec.DecodeError) as error:
        # What the server says runs is not run again without an entry here: nothing is done twice.
        _log.warning("the commands that were kept cannot be read", file=str(file), reason=str(error))
        return ()
