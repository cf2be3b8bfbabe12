"""Following one kernel log: which faults it tells of, once each, whatever is read again, torn apart or repeated."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeVar, assert_never

from domain.kernel_faults import (
    FALLEN_OFF_CODE,
    RECOVERY_CODE,
    BoardSerial,
    Booted,
    DriverLoaded,
    Fault,
    FaultKind,
    GpuNamed,
    Lost,
    LostNamed,
    RateLimited,
    Statement,
    fallen_off,
    statements,
)
from domain.kernel_log import Record

BURST_GAP_US: Final = 10_000_000
"""Equal faults that follow each other within this are one event: a GSP that hangs is reported every 6 seconds."""
SWITCH_GAP_US: Final = 1_000_000
"""The lines of one error of a switch come within this."""
CAUSE_GAP_US: Final = 60_000_000
"""A channel removed (Xid 45) within this after another Xid of its GPU is a consequence of that one."""
REMEMBERED_MAX: Final = 4_096
SEQUENCES_MAX: Final = 65_536
_CHANNEL_REMOVED: Final = 45
_GSP_TIMEOUT: Final = 119
_NO_CAUSE: Final = frozenset({_CHANNEL_REMOVED, RECOVERY_CODE})

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFault:
    """A fault with where and how often it was seen: a burst of equal ones is one fault with a count.

    `number` is the fault's in its scan: a later one of the same number replaces it. `line` and `sequence` are those of
    its first record, `at_us` is the last time on the log's own clock. `is_at_least` says that lines were left out.
    """

    number: int
    line: int
    fault: Fault
    boot_id: str | None = None
    sequence: int | None = None
    at_us: int | None = None
    gpu_uuid: str | None = None
    board_serial: str | None = None
    driver_version: str | None = None
    count: int = 1
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Records are missing before a line; how many is None where nothing tells."""

    line: int
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class _Gpu:
    uuid: str
    board_serial: str | None = None


class FaultScan:
    """Reads records in their order and returns what is new: faults, grown bursts, gaps.

    It remembers what belongs to one boot, within bounds: the oldest is forgotten first.
    """

    def __init__(self, boot_id: str | None = None) -> None:
        self._boot_id = boot_id
        self._number = 0
        self._driver_version: str | None = None
        self._last_sequence: int | None = None
        self._begin_boot()

    def overrun(self, line: int = 0) -> Gap:
        """Tell that the reader was overrun (EPIPE of /dev/kmsg): what follows is another part of the log."""
        self._last_sequence = None
        return Gap(line)

    def read(self, record: Record, line: int = 0) -> tuple[SeenFault | Gap, ...]:
        """Read a record; `line` is its place for people."""
        if record.boot_id is not None and record.boot_id != self._boot_id:
            self._begin_boot()
            self._boot_id = record.boot_id
        gap = self._gap(record, line)
        said = tuple(statements(record.message)) if record.is_of_kernel else ()
        if not said or self._is_repeated(record):
            return gap
        return (*gap, *(seen for statement in said for seen in self._hear(statement, record, line)))

    def _begin_boot(self) -> None:
        self._gpus: dict[str, _Gpu] = {}
        self._named: str | None = None
        self._lost_named: str | None = None
        self._fallen: dict[str, FaultKind] = {}
        self._limited: dict[str, None] = {}
        self._bursts: dict[Fault, SeenFault] = {}
        self._causes: dict[str, tuple[int, int | None]] = {}
        self._sequences: dict[int, int | None] = {}

    def _gap(self, record: Record, line: int) -> tuple[Gap, ...]:
        if record.sequence is None:
            return ()
        before, self._last_sequence = self._last_sequence, record.sequence
        if before is None or record.sequence <= before + 1:
            return ()
        return (Gap(line, record.sequence - before - 1),)

    def _is_repeated(self, record: Record) -> bool:
        """Say whether this boot's record was read before; numbers that begin anew, earlier, are another boot's."""
        if record.sequence is None:
            return False
        last = next(reversed(self._sequences), None)
        if last is not None and record.sequence <= last:
            read_at, last_at = self._sequences.get(record.sequence), self._sequences[last]
            is_earlier = record.at_us is not None and last_at is not None and record.at_us < last_at
            if read_at == record.at_us or not is_earlier:
                return True
            self._begin_boot()
        _remember(self._sequences, record.sequence, record.at_us, SEQUENCES_MAX)
        return False

    def _hear(self, statement: Statement, record: Record, line: int) -> Iterator[SeenFault]:
        match statement:
            case Fault():
                yield from self._see(statement, record, line)
            case Lost(message):
                yield from self._see(self._lost(message), record, line)
            case LostNamed(address):
                self._lost_named = address
            case GpuNamed(place, uuid):
                self._named = place
                _remember(self._gpus, place, _Gpu(uuid), REMEMBERED_MAX)
            case BoardSerial(serial):
                if self._named in self._gpus:
                    self._gpus[self._named] = replace(self._gpus[self._named], board_serial=serial)
            case RateLimited(place):
                _remember(self._limited, place, None, REMEMBERED_MAX)
                yield from self._limit(place)
            case DriverLoaded(version):
                self._driver_version = version
            case Booted():
                self._begin_boot()
            case _:
                assert_never(statement)

    def _lost(self, message: str) -> Fault:
        """Return the fault that three lines tell; a first line that is missing leaves the GPU unknown."""
        address, self._lost_named = self._lost_named, None
        return fallen_off(address or "", message)

    def _limit(self, place: str) -> Iterator[SeenFault]:
        """Say of what was seen of a GPU's processor that it happened more often."""
        for key, burst in self._bursts.items():
            if key.code == _GSP_TIMEOUT and key.place == place:
                self._bursts[key] = replace(burst, is_at_least=True)
                yield self._bursts[key]

    def _see(self, fault: Fault, record: Record, line: int) -> Iterator[SeenFault]:
        if not fault.address:
            # Two unknown GPUs are not one.
            yield self._first(fault, record, line)
            return
        if fault.kind is FaultKind.FALLEN_OFF:
            self._lost_named = fault.address
        if self._is_told_otherwise(fault):
            return
        fault = self._with_cause(fault, record.at_us)
        key = _burst_key(fault)
        burst = self._bursts.pop(key, None)
        if burst is not None and _within(burst.at_us, record.at_us, _gap_of(fault)):
            seen = replace(
                burst,
                fault=_joined(burst.fault, fault),
                at_us=record.at_us,
                count=burst.count + _counts(burst.fault, fault),
                is_at_least=self._is_limited(fault),
            )
        else:
            seen = self._first(fault, record, line)
        if fault.code != RECOVERY_CODE:
            _remember(self._bursts, key, seen, REMEMBERED_MAX)
        yield seen

    def _first(self, fault: Fault, record: Record, line: int) -> SeenFault:
        self._number += 1
        gpu = self._gpus.get(fault.place) if fault.kind is not FaultKind.SXID else None
        return SeenFault(
            number=self._number,
            line=line,
            fault=fault,
            boot_id=self._boot_id,
            sequence=record.sequence,
            at_us=record.at_us,
            gpu_uuid=gpu.uuid if gpu else None,
            board_serial=gpu.board_serial if gpu else None,
            driver_version=self._driver_version,
            is_at_least=self._is_limited(fault),
        )

    def _is_limited(self, fault: Fault) -> bool:
        return fault.code == _GSP_TIMEOUT and fault.place in self._limited

    def _is_told_otherwise(self, fault: Fault) -> bool:
        """Say whether a GPU that fell off the bus is told of in other words than before: it counts once."""
        if fault.kind is FaultKind.SXID or fault.code != FALLEN_OFF_CODE:
            return False
        before = self._fallen.get(fault.place)
        if before is None:
            _remember(self._fallen, fault.place, fault.kind, REMEMBERED_MAX)
            return False
        return FaultKind.FALLEN_OFF in {before, fault.kind}

    def _with_cause(self, fault: Fault, at_us: int | None) -> Fault:
        """Link a removed channel to the Xid before it, and remember what later ones may follow from."""
        if fault.kind is FaultKind.SXID:
            return fault
        if fault.code == _CHANNEL_REMOVED and fault.caused_by is None:
            code, cause_at = self._causes.get(fault.place, (None, None))
            return replace(fault, caused_by=code) if code and _within(cause_at, at_us, CAUSE_GAP_US) else fault
        if fault.caused_by is None and fault.code not in _NO_CAUSE:
            _remember(self._causes, fault.place, (fault.code, at_us), REMEMBERED_MAX)
        return fault


def _burst_key(fault: Fault) -> Fault:
    """Return what equal faults have in common: of a switch's lines the code and the place, else all but the words."""
    if fault.kind is FaultKind.SXID:
        return Fault(kind=fault.kind, code=fault.code, address=fault.place, pci=fault.pci, message="")
    return replace(fault, message="", address=fault.place)


def _joined(before: Fault, fault: Fault) -> Fault:
    """Return a burst's fault with what only a later line of a switch tells."""
    is_told_by_this = fault.kind is FaultKind.SXID and fault.is_fatal is not None
    return fault if is_told_by_this and (before.is_fatal is None or fault.is_fatal) and not before.is_fatal else before


def _counts(before: Fault, fault: Fault) -> int:
    """Say how many more a line makes: the further lines of a switch belong to its first."""
    return int(fault.kind is not FaultKind.SXID or (before.is_fatal is not None and fault.is_fatal is not None))


def _gap_of(fault: Fault) -> int:
    return SWITCH_GAP_US if fault.kind is FaultKind.SXID else BURST_GAP_US


def _within(before_us: int | None, at_us: int | None, gap_us: int) -> bool:
    """Say whether two times are close; where one is not known, order alone tells."""
    return before_us is None or at_us is None or abs(at_us - before_us) <= gap_us


def _remember(remembered: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    remembered.pop(key, None)
    remembered[key] = value
    if len(remembered) > most:
        del remembered[next(iter(remembered))]
