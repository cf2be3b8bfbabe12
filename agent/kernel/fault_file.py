"""The faults of this boot on the disk: a restart of the agent knows them again, another boot begins with none."""

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agent.state_file import replace_file
from domain.known_faults import KnownFault, KnownFaults

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Far more than the bounds of what is known make of it."""
_FILE: Final = "faults.json"

_log = structlog.get_logger(__name__)


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    boot_id: str
    kernel_log: str
    read_to: int
    gaps: int
    faults: tuple[KnownFault, ...]
    gpus: dict[str, str]


class FaultFile:
    """What is known of one kernel log in one boot, in a file of its own (0600).

    Without a boot's id nothing is kept: nobody could tell whether the faults are of the present boot.
    """

    def __init__(self, state_dir: Path, kernel_log: str, boot_id: str | None) -> None:
        self._file = state_dir / _FILE
        self._kernel_log = kernel_log
        self._boot_id = boot_id

    def read(self) -> KnownFaults:
        """Return what was kept of this boot and this log; a file that is damaged is set aside, and that is said."""
        kept = self._read()
        if kept is None or kept.boot_id != self._boot_id or kept.kernel_log != self._kernel_log:
            return KnownFaults(boot_id=self._boot_id)
        return KnownFaults(
            boot_id=kept.boot_id,
            read_to=kept.read_to,
            gaps=kept.gaps,
            faults={known.key: known for known in kept.faults},
            gpus=kept.gpus,
        )

    def write(self, known: KnownFaults) -> None:
        """Keep what is known. Raises OSError."""
        if self._boot_id is None:
            return
        kept = _Kept(
            boot_id=self._boot_id,
            kernel_log=self._kernel_log,
            read_to=known.read_to,
            gaps=known.gaps,
            faults=tuple(known.faults.values()),
            gpus=dict(known.gpus),
        )
        replace_file(self._file, msgspec.json.encode(kept))

    def _read(self) -> _Kept | None:
        try:
            with self._file.open("rb") as opened:
                return msgspec.json.decode(opened.read(FILE_BYTES_MAX), type=_Kept)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _log.warning("the faults that were kept cannot be read", file=str(self._file), reason=error.strerror)
            return None
        except (msgspec.MsgspecError, RecursionError) as error:
            aside = self._file.with_name(f"{_FILE}.damaged")
            with suppress(OSError):
                self._file.replace(aside)
            _log.warning("the faults that were kept are damaged and set aside", file=str(aside), reason=str(error))
            return None
