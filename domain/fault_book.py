"""Reading one kernel log, again after each restart of its reader, and accounting for each of its faults once."""

from dataclasses import dataclass, replace
from typing import Final

from domain.fault_scan import REMEMBERED_MAX, FaultScan, Gap, SeenFault
from domain.kernel_faults import Booted, statements
from domain.kernel_log import Record
from domain.known_faults import MESSAGE_LENGTH_MAX, NOTHING_READ, KnownFault, KnownFaults

COUNTED_MAX: Final = 2 * REMEMBERED_MAX
"""More bursts than a scan remembers: none of those that may grow is counted anew."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a record brought: faults, whether they are more than a known fault of a program again, and lost records."""

    faults: tuple[KnownFault, ...] = ()
    is_news: bool = False
    lost: int | None = None


class FaultBook:
    """The faults of the present boot. `known` is what there is to keep; a book that is opened with it goes on."""

    def __init__(self, known: KnownFaults) -> None:
        self.known = known
        self._kept = known
        self._boot = _bare(known.boot_id)
        self._scan = FaultScan(self._boot)
        self._counted: dict[int, int] = {}

    def read(self, record: Record) -> Heard:
        """Read the next record of the log. What was read in an earlier life only tells what belongs together."""
        if record.boot_id is not None and self._boot is not None and _bare(record.boot_id) != self._boot:
            return Heard()
        place = record.sequence if record.sequence is not None else record.at_us
        is_new = place is None or place > self._kept.read_to
        if _is_boot(record):
            self._begin(is_new=is_new)
        found = self._scan.read(replace(record, boot_id=self._boot))
        lost = next((each.lost for each in found if isinstance(each, Gap)), None) if is_new else None
        if lost is not None:
            self.known = replace(self.known, gaps=self.known.gaps + 1)
        before = self.known
        fresh = [self._fresh(each, place or 0) for each in found if isinstance(each, SeenFault)]
        if not is_new:
            return Heard()
        for each in fresh:
            self.known = self.known.noted(each)
        is_news = any(not each.is_of_program or each.key not in before.faults for each in fresh)
        return Heard(tuple(fresh), is_news, lost)

    def _fresh(self, seen: SeenFault, place: int) -> KnownFault:
        """Return what a record adds to the faults: those of its burst that were not counted yet."""
        pci, uuid = seen.fault.pci, seen.gpu_uuid
        if pci is not None and uuid is not None:
            self.known = self.known.placed({pci: uuid})
        more = seen.count - self._counted.pop(seen.number, 0)
        self._counted[seen.number] = seen.count
        if len(self._counted) > COUNTED_MAX:
            del self._counted[next(iter(self._counted))]
        return KnownFault(
            fault=replace(seen.fault, message=seen.fault.message[:MESSAGE_LENGTH_MAX]),
            sequence=place,
            count=more,
            device_id=uuid or self.known.gpu_at(seen.fault),
        )

    def _begin(self, *, is_new: bool) -> None:
        """Drop what an older boot left in the same log; what is kept of this one stays."""
        if is_new:
            self._kept = replace(self._kept, faults={}, read_to=NOTHING_READ)
        self.known = replace(self.known, faults=self._kept.faults, read_to=self._kept.read_to)


def _is_boot(record: Record) -> bool:
    return record.is_of_kernel and any(isinstance(said, Booted) for said in statements(record.message))


def _bare(boot_id: str | None) -> str | None:
    """Return a boot's id as journals write it, without dashes."""
    return None if boot_id is None else boot_id.replace("-", "").lower()
