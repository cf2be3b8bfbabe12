"""Records of a kernel log, read from whatever form it was kept in.

Read are records of /dev/kmsg, lines of dmesg (plain, `-T`, `-x`, `-r`, `--time-format iso`) and of pstore, what syslog
and journald write of the kernel, journald's JSON and ftrace's text. No text is refused or takes long: what is no record
of the kernel says nothing. Source: the kernel's Documentation/ABI/testing/dev-kmsg, systemd.journal-fields(7).
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

LINE_LENGTH_MAX: Final = 65_536
"""Characters; journald's JSON has dozens of fields a line."""
MESSAGE_LENGTH_MAX: Final = 8_192
_KERNEL: Final = 0
_USER: Final = 1
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAP_YEAR: Final = 2000
_NUMBER_LENGTH_MAX: Final = 19

_FRAME: Final = re.compile(r"(\d{1,9}),(\d{1,19}),(\d{1,19}),[^;]{0,256};", re.ASCII)
_ESCAPED: Final = re.compile(r"(?:\\x[0-9a-f]{2})+")
# Every part is optional, anchored to the one before it and bounded: the match is linear.
_PREFIX: Final = re.compile(
    r"""\s{0,128}
    (?:<(?P<priority>\d{1,9})>)?
    (?:(?P<facility>[a-z]{3,8}\d?)\s{0,8}:(?:emerg|alert|crit|err|warn|notice|info|debug)\s{0,8}:\s{0,8})?
    (?:(?:[A-Z][a-z]{2}\ )?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\d{0,3}(?:Z|[+-]\d\d:?\d\d)?)
       (?:\ UTC)?\s{1,8}
      |(?P<syslog>[A-Z][a-z]{2}\s{1,2}\d{1,2}\ \d\d:\d\d:\d\d)(?:\.\d{1,6})?\s{1,8}
      |[^\s:\[\]][^:\[\]]{0,64}-\d{1,10}\s{1,8}\[\d{1,4}\]\s{1,8}\S{1,8}\s{1,8}(?P<trace>\d{1,10}\.\d{1,9}):\s{1,8}\w{1,64}:\s{1,8})?
    (?:[^\s\[:]{1,255}\s{1,8}kernel:\s{1,8})?
    (?:\[\s{0,12}(?P<uptime>\d{1,10}\.\d{1,9})\]\s{0,8}
      |\[(?P<ctime>[A-Z][a-z]{2}\ [A-Z][a-z]{2}\ {1,2}\d{1,2}\ \d\d:\d\d:\d\d\ \d{4})\]\s{0,8})?
    (?:\[\s{0,12}[TC]\d{1,10}\]\s{0,8}|[^\s\[:]{1,255}\s{1,8}kernel:\s{1,8})?""",
    re.ASCII | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record; its message may have several lines.

    `facility` is who wrote it (0 the kernel, None where the form does not tell), `sequence` its number in its boot,
    `at_us` when it was written, in microseconds of the log's own clock: since the boot, or by the calendar.
    """

    message: str
    facility: int | None = None
    sequence: int | None = None
    at_us: int | None = None
    boot_id: str | None = None

    @property
    def is_of_kernel(self) -> bool:
        """Whether the kernel wrote it, as far as can be told: nobody else can use facility 0."""
        return self.facility in {None, _KERNEL}


class _JournalEntry(msgspec.Struct):
    message: str | list[int] | None = msgspec.field(name="MESSAGE", default=None)
    transport: str | None = msgspec.field(name="_TRANSPORT", default=None)
    facility: str | None = msgspec.field(name="SYSLOG_FACILITY", default=None)
    identifier: str | None = msgspec.field(name="SYSLOG_IDENTIFIER", default=None)
    boot_id: str | None = msgspec.field(name="_BOOT_ID", default=None)
    source_us: str | None = msgspec.field(name="_SOURCE_MONOTONIC_TIMESTAMP", default=None)
    received_us: str | None = msgspec.field(name="__MONOTONIC_TIMESTAMP", default=None)


_JOURNAL: Final = msgspec.json.Decoder(_JournalEntry)


def read_record(text: str) -> Record | None:
    """Read a line of a log, or a whole record of /dev/kmsg, of which the lines with a dictionary tell nothing here."""
    text = text[:LINE_LENGTH_MAX]
    if text.startswith("{"):
        return _of_journal(text)
    head, _, _ = text.partition("\n")
    frame = _FRAME.match(head)
    if frame is None:
        return _of_line(head)
    priority, sequence, at_us = map(int, frame.groups())
    return Record(
        message=_ESCAPED.sub(_unescaped, head[frame.end() :][:MESSAGE_LENGTH_MAX]),
        facility=priority >> 3,
        sequence=sequence,
        at_us=at_us,
    )


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "replace")


def _of_line(line: str) -> Record | None:
    found = _PREFIX.match(line)
    message = line[found.end() if found else 0 :][:MESSAGE_LENGTH_MAX].rstrip()
    if found is None or not message:
        return None
    facility = None
    if found["priority"] is not None:
        facility = int(found["priority"]) >> 3
    elif found["facility"] is not None:
        facility = _KERNEL if found["facility"] == "kern" else _USER
    return Record(message=message, facility=facility, at_us=_clock(found))


def _clock(found: re.Match[str]) -> int | None:
    uptime = found["uptime"] or found["trace"]
    if uptime is not None:
        seconds, _, fraction = uptime.partition(".")
        return int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    try:
        if found["iso"] is not None:
            at = datetime.fromisoformat(found["iso"])
        elif found["ctime"] is not None:
            _, month, day, time, year = found["ctime"].split()
            at = _calendar(int(year), month, day, time)
        elif found["syslog"] is not None:
            at = _calendar(_LEAP_YEAR, *found["syslog"].split())
        else:
            return None
        return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)
    except ValueError:
        # A day 99: it only looks like a time.
        return None


def _calendar(year: int, month: str, day: str, time: str) -> datetime:
    hour, minute, second = map(int, time.split(":"))
    return datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)


def _of_journal(text: str) -> Record | None:
    try:
        entry = _JOURNAL.decode(text)
        message = (
            entry.message if not isinstance(entry.message, list) else bytes(entry.message).decode("utf-8", "replace")
        )
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if message is None:
        return None
    return Record(
        message=message[:MESSAGE_LENGTH_MAX],
        facility=_facility(entry),
        at_us=_number(entry.source_us) if entry.source_us is not None else _number(entry.received_us),
        boot_id=entry.boot_id[:64] if entry.boot_id is not None else None,
    )


def _facility(entry: _JournalEntry) -> int:
    """Say who wrote an entry: what a program writes to /dev/kmsg has the kernel's transport and its own facility."""
    if entry.transport != "kernel":
        return _USER
    told = _number(entry.facility)
    if told is not None:
        return told
    return _KERNEL if entry.facility is None and entry.identifier in {None, "kernel"} else _USER


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdecimal() and len(text) <= _NUMBER_LENGTH_MAX):
        return None
    return int(text)
