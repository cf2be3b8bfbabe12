"""Following this machine's kernel log: its faults are known within a second, and kept."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Final

import structlog

from agent.kernel.fault_file import FaultFile
from agent.kernel.sources import Records, reason_of, records_of
from domain.fault_book import FaultBook, Heard
from domain.kernel_log import read_record
from domain.known_faults import KnownFaults

NO_LOG: Final = "none"
STANDARD_INPUT: Final = "/dev/stdin"
POLL_SECONDS: Final = 0.25
RETRY_SECONDS: Final = 30.0
KEEP_SECONDS: Final = 5.0
"""How often the file is written while nothing is new but counts: what it lacks is still in the log after a restart."""
_GAPS_SAID_SECONDS: Final = 60.0

_log = structlog.get_logger(__name__)


class FaultLog:
    """The faults that a kernel log tells of. Cancel `run` to end it.

    `changed` is called when faults are known that were not, or more of them; `alarmed` with the codes of what is more
    than a known fault of a program again, from when the log was read to its end for the first time.
    """

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        records: Records | None,
        name: str,
        file: FaultFile,
        *,
        changed: Callable[[], None],
        alarmed: Callable[[frozenset[int]], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._records = records
        self._name = name
        self._file = file
        self._book = FaultBook(file.read())
        self._kept = self._book.known
        self._changed = changed
        self._alarmed = alarmed
        self._clock = clock
        self._kept_at = float("-inf")
        self._gap_said_at = float("-inf")
        self._told: set[str] = set()
        self._is_caught_up = False

    @property
    def known(self) -> KnownFaults:
        """What is known now."""
        return self._book.known

    def place(self, gpus: Mapping[str, str]) -> None:
        """Learn which GPU (UUID) is at which canonical PCI address."""
        self._book.known = self.known.placed(gpus)
        self._keep()

    def forget(self, device_id: str, up_to: int) -> None:
        """Forget a GPU's faults up to a place in the log."""
        self._book.known = self.known.without(device_id, up_to)
        self._keep(at_once=True)

    async def run(self) -> None:
        """Follow the log for ever; without one, return."""
        if self._records is None:
            return
        try:
            while True:
                pause = self._turn(self._records)
                self._keep()
                await asyncio.sleep(pause)
        finally:
            self._records.close()

    def _turn(self, records: Records) -> float:
        """Read what there is, and return how long to wait before there may be more."""
        try:
            texts = records.read()
        except OSError as error:
            self._tell(reason_of(self._name, error))
            return RETRY_SECONDS
        heard = [self._book.read(record) for text in texts if (record := read_record(text)) is not None]
        self._note(heard)
        if not texts and not self._is_caught_up:
            self._is_caught_up = True
            _log.info("kernel log followed", kernel_log=self._name, faults=len(self.known.faults))
        return 0 if texts else POLL_SECONDS

    def _note(self, heard: list[Heard]) -> None:
        faults = [fault for each in heard for fault in each.faults]
        if faults:
            self._changed()
        if self._is_caught_up and any(each.is_news for each in heard):
            self._alarmed(frozenset(fault.fault.code for fault in faults))
        lost = [each.lost for each in heard if each.lost is not None]
        if lost and self._clock() - self._gap_said_at >= _GAPS_SAID_SECONDS:
            self._gap_said_at = self._clock()
            _log.warning("records of the kernel log were lost", kernel_log=self._name, records=sum(lost))

    def _keep(self, *, at_once: bool = False) -> None:
        """Write what is known when there are other faults or places; what is only more of the same can wait."""
        known = self.known
        if known is self._kept:
            return
        is_other = known.faults.keys() != self._kept.faults.keys() or known.gpus != self._kept.gpus
        if not at_once and self._clock() - self._kept_at < (POLL_SECONDS if is_other else KEEP_SECONDS):
            return
        self._kept_at = self._clock()
        try:
            self._file.write(known)
            self._kept = known
        except OSError as error:
            self._kept_at += KEEP_SECONDS
            self._tell(f"faults cannot be kept: {error.strerror or error}")

    def _tell(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            _log.warning("kernel log", reason=reason)


def followed_log(
    path: str,
    state_dir: Path,
    boot_id: str | None,
    *,
    changed: Callable[[], None],
    alarmed: Callable[[frozenset[int]], None],
) -> FaultLog:
    """Return the log that an operator names: a path, `-` for standard input, or `none`."""
    name = STANDARD_INPUT if path == "-" else path
    records = None if path == NO_LOG else records_of(name)
    return FaultLog(records, name, FaultFile(state_dir, name, boot_id), changed=changed, alarmed=alarmed)
