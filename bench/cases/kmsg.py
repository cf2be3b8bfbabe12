"""Kernel logs: what each line was concluded to be, and what became of it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent.explain import ExplainedFault, explain, explain_fault
from bench.cases.answer import Concluded
from bench.cases.lines import aligned
from domain.fault_scan import FaultScan, Gap, SeenFault
from domain.kernel_faults import Fault, FaultKind
from domain.kernel_log import Record, read_record
from domain.xid_rules import XID_RULES
from domain.xid_verdict import Circumstances, judge

_OVERRUN: Final = "EPIPE"
_DRIVERS: Final = {"driver unknown": None, "driver 570": "570.1", "driver 575": "575.1"}
_SAID: Final[Mapping[str, Callable[[Fault], object]]] = {
    "xid": lambda fault: fault.code if fault.kind is FaultKind.XID else None,
    "sxid": lambda fault: fault.code if fault.kind is FaultKind.SXID else None,
    "fallen_off_bus": lambda fault: fault.kind is FaultKind.FALLEN_OFF,
    "pci": lambda fault: fault.pci.lower() if fault.pci else None,
    "pci_raw": lambda fault: fault.address,
    "pid": lambda fault: fault.pid,
    "process": lambda fault: fault.process,
    "caused_by": lambda fault: fault.caused_by,
    "link": lambda fault: fault.link,
    "switch": lambda fault: fault.switch,
    "fatal": lambda fault: fault.is_fatal,
    "known": lambda fault: fault.code in XID_RULES.by_code,
    "unit": lambda fault: fault.nvlink.unit if fault.nvlink else None,
    "xc": lambda fault: fault.nvlink.xc if fault.nvlink else None,
    "injected": lambda fault: fault.nvlink.is_injected if fault.nvlink else None,
    "subcode": lambda fault: fault.nvlink.words[0] >> 20 & 0x3F if fault.nvlink and fault.nvlink.words else None,
}
"""What a line's expectation may say, and how the product says it; other words of it are for people."""


def log(files: Sequence[Path]) -> Concluded:
    """Read a log."""
    lines = files[0].read_text(encoding="utf-8").splitlines()
    found = explain(lines)
    kernels = sum(record is not None and record.is_of_kernel for record in map(read_record, lines))
    gaps = [f"{gap.lost} records are missing before line {gap.line}" for gap in found.gaps]
    rows = [_row(f"line {fault.line}", fault) for fault in found.faults]
    told = f"{found.lines} lines, {kernels} of them records of the kernel; {len(found.faults)} faults"
    return Concluded("explain-log", [told, *aligned(rows), *gaps])


def entries(files: Sequence[Path]) -> Concluded:
    """Read lines of JSON, each with a line of a log or a record of /dev/kmsg and what is expected of it."""
    scan = FaultScan()
    lines: list[str] = []
    for place, text in enumerate(files[0].read_text(encoding="utf-8").splitlines(), start=1):
        entry = json.loads(text)
        fed = entry.get("line") or entry["raw"]
        lines += [f"{place}: {fed}".replace("\n", "\\n"), *(f"   {told}" for told in _told(scan, fed, place))]
        lines += [f"   {told}" for told in _held_against(entry["expect"], read_record(fed))]
    return Concluded("read_record and one scan over all lines, judged under three drivers where they differ", lines)


def _told(scan: FaultScan, fed: str, place: int) -> Iterator[str]:
    record = read_record(fed)
    if fed == _OVERRUN or record is None:
        yield str(scan.overrun(place))
        return
    if record.facility is not None:
        yield f"record: facility {record.facility}, sequence {record.sequence}, {record.at_us} µs, {record.message!r}"
    seen = scan.read(record, place)
    for each in seen:
        yield from [str(each)] if isinstance(each, Gap) else aligned(_verdicts(each))
    if not any(isinstance(each, SeenFault) for each in seen):
        yield "no fault of its own"


def _verdicts(seen: SeenFault) -> list[tuple[str, ...]]:
    rows = {
        name: _row(name, explain_fault(seen, judge(seen, Circumstances(driver_version=version))))
        for name, version in _DRIVERS.items()
    }
    differ = len({row[1:-1] for row in rows.values()}) > 1
    return list(rows.values()) if differ else [rows["driver unknown"]]


def _row(head: str, fault: ExplainedFault) -> tuple[str, ...]:
    who = f"{fault.pid or '-'} {fault.process or ''}".strip()
    return (
        head,
        f"{fault.kind.value} {fault.code}",
        " ".join(filter(None, (fault.pci or f"{fault.address or 'unnamed'} (no address)", fault.mig))),
        f"pid {who}",
        f"{'at least ' if fault.at_least else ''}{fault.count}x",
        " ".join(filter(None, (fault.verdict, fault.condition, f"of the {fault.scope}", fault.remedy))),
        fault.rule,
        fault.note or "",
    )


def _held_against(expected: Mapping[str, Any] | None, record: Record | None) -> Iterator[str]:
    """Yield where the line alone is read as something else than expected."""
    seen = FaultScan().read(record) if record is not None else ()
    fault = next((each.fault for each in seen if isinstance(each, SeenFault)), None)
    if fault is None:
        wanted = {key: value for key, value in (expected or {}).items() if key in {"xid", "sxid", "fallen_off_bus"}}
        yield from [f"DIFFERS: expected {wanted}"] if any(wanted.values()) else []
        return
    if expected is None:
        yield "DIFFERS: expected no fault"
        return
    for key, value in expected.items():
        if key in _SAID and _SAID[key](fault) != value:
            yield f"DIFFERS: {key} is {_SAID[key](fault)!r}, expected {value!r}"
