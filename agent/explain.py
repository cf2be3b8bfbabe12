"""`fleetgraph-agent explain-log`: what a recorded kernel log tells of faults, without a server."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec
import typer

from agent.arguments import Output, OutputOption
from agent.console import one_line_failures
from agent.failures import WronglyCalled
from domain.fault_scan import FaultScan, Gap, SeenFault
from domain.kernel_faults import FaultKind
from domain.kernel_log import LINE_LENGTH_MAX, read_record
from domain.xid_verdict import Circumstances, Verdict, judge

FAULTS_MAX: Final = 100_000
_STANDARD_INPUT: Final = "-"


class ExplainedFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault as `--output json` prints it.

    `line` is where it was first seen, counted from 1, `pci` None where no device can have the `address` printed.
    `verdict` is a word of `domain.xid_rules.XidPolicy`, `rule` the id and version of what says so. `fatal` is what a
    switch calls it.
    """

    line: int
    kind: FaultKind
    code: int
    pci: str | None
    pid: int | None
    mig: str | None
    verdict: str
    rule: str
    caused_by: int | None
    address: str
    scope: str
    condition: str | None
    remedy: str | None
    count: int
    at_least: bool
    process: str | None
    link: int | None
    fatal: bool | None
    uuid: str | None
    board_serial: str | None
    boot_id: str | None
    meaning: str
    recommended_action: str | None
    note: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a log told: its faults in the order they began, the places where records are missing, its length."""

    faults: tuple[ExplainedFault, ...]
    gaps: tuple[Gap, ...]
    lines: int
    left_out: int
    """Faults beyond FAULTS_MAX."""


def explain_log(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A kernel log in any usual form; `-` reads standard input.")
    ],
    driver_version: Annotated[
        str | None,
        typer.Option(
            "--driver-version",
            metavar="VERSION",
            help="The driver that wrote it, such as 575.57.08, if the log has none.",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain the faults of GPUs and NVSwitches in a kernel log: of dmesg, journalctl, /dev/kmsg, syslog or pstore."""
    with one_line_failures():
        found = _explained(file, driver_version)
    if output is Output.JSON:
        for fault in found.faults:
            typer.echo(msgspec.json.encode(fault).decode())
    else:
        for fault in found.faults:
            typer.echo("\n".join(_told(fault)))
        typer.echo(f"{len(found.faults)} faults in {found.lines} lines")
    for gap in found.gaps:
        lost = "records are" if gap.lost is None else f"{gap.lost} records are"
        typer.echo(f"fleetgraph-agent: {lost} missing before line {gap.line}", err=True)
    if found.left_out:
        typer.echo(f"fleetgraph-agent: {found.left_out} more faults are left out", err=True)


def explain(lines: Iterable[str], driver_version: str | None = None) -> Explanation:
    """Explain a log's lines."""
    scan = FaultScan()
    faults: dict[int, SeenFault] = {}
    gaps: list[Gap] = []
    left_out = place = 0
    for place, line in enumerate(lines, start=1):
        record = read_record(line)
        for each in scan.read(record, place) if record is not None else ():
            if isinstance(each, Gap):
                gaps += [each] if len(gaps) < FAULTS_MAX else []
            elif each.number <= FAULTS_MAX:
                faults[each.number] = each
            else:
                left_out = each.number - FAULTS_MAX
    known = Circumstances(driver_version=driver_version)
    explained = (explain_fault(seen, judge(seen, known)) for seen in faults.values())
    return Explanation(tuple(explained), tuple(gaps), place, left_out)


def explain_fault(seen: SeenFault, verdict: Verdict) -> ExplainedFault:
    """Return a fault with its verdict, as it is printed."""
    fault = seen.fault
    return ExplainedFault(
        line=seen.line,
        kind=fault.kind,
        code=fault.code,
        pci=fault.pci.lower() if fault.pci else None,
        pid=fault.pid,
        mig=str(fault.mig) if fault.mig else None,
        verdict=verdict.policy.value,
        rule=verdict.rule,
        caused_by=fault.caused_by,
        address=fault.address,
        scope=verdict.scope.value,
        condition=verdict.condition,
        remedy=verdict.remedy.value if verdict.remedy else None,
        count=seen.count,
        at_least=seen.is_at_least,
        process=fault.process,
        link=fault.link,
        fatal=fault.is_fatal,
        uuid=seen.gpu_uuid,
        board_serial=seen.board_serial,
        boot_id=seen.boot_id,
        meaning=verdict.meaning,
        recommended_action=verdict.recommended_action,
        note=verdict.note,
        message=fault.message,
    )


def _explained(file: Path, driver_version: str | None) -> Explanation:
    try:
        with nullcontext(sys.stdin.buffer) if str(file) == _STANDARD_INPUT else file.open("rb") as opened:
            return explain(_lines(opened), driver_version)
    except OSError as error:
        raise WronglyCalled(f"cannot read {file}: {error.strerror or error}") from error


def _lines(opened: BinaryIO) -> Iterator[str]:
    """Yield lines, of which no more than their start is held."""
    while line := opened.readline(LINE_LENGTH_MAX):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = opened.readline(LINE_LENGTH_MAX)
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def _told(fault: ExplainedFault) -> Iterator[str]:
    name = {FaultKind.XID: "Xid", FaultKind.SXID: "SXid", FaultKind.FALLEN_OFF: "fallen off the bus, as Xid"}[
        fault.kind
    ]
    often = (
        f" ({'at least ' if fault.at_least else ''}{fault.count} times)" if fault.count > 1 or fault.at_least else ""
    )
    where = " ".join(filter(None, (fault.pci or fault.address or "a GPU not named", fault.mig, fault.uuid)))
    yield f"line {fault.line}: {name} {fault.code} at {where}{often}"
    yield f"  {_printable(fault.message)}" if fault.message else "  (no more was said)"
    yield f"  means:   {fault.meaning}"
    raised = f": {fault.condition} of the {fault.scope}" if fault.condition else f" of the {fault.scope}"
    ended = f", ended by {fault.remedy}" if fault.remedy else ""
    yield f"  verdict: {fault.verdict}{raised}{ended} (rule {fault.rule})"
    if fault.note:
        yield f"  note:    {fault.note}"
    if fault.recommended_action and fault.caused_by is None:
        yield f"  to do:   {fault.recommended_action}"


def _printable(text: str) -> str:
    """Return a log's text without what a terminal would obey."""
    return "".join(char if char.isprintable() else "�" for char in text)
