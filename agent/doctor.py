"""What the agent can and cannot see on a host, fact by fact and with the remedy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from rich.table import Table
from rich.text import Text

from agent.host.answers import Cause, Missing
from agent.host.files import Fact, Source
from agent.host.inventory import collect_with_reasons
from agent.host.options import HostOptions
from agent.host.pressure import read_pressure
from agent.kernel.log import NO_LOG, STANDARD_INPUT
from agent.kernel.sources import KMSG
from domain.availability import Availability
from domain.documents.document import Section

_ITEMS_MAX: Final = 8
_GIB: Final = 1 << 30
_ALLOWED: Final = "run as root or give CAP_DAC_READ_SEARCH"
_REMEDIES: Final = (
    (KMSG, "run as root or give CAP_SYSLOG"),
    ("/dev/kvm", "run as root or join the group kvm"),
    (Fact.CONTAINER_VARIABLE, "run as root or give CAP_SYS_PTRACE"),
)
_NOT_ASKED: Final = frozenset({"os.engines", "images.weights"})
_NONE_IS_KNOWN: Final = frozenset({"os.fabricManager", "os.imex"})
_WORDS: Final = {
    Availability.KNOWN: "",
    Availability.UNKNOWN: "the source has no value",
    Availability.UNSUPPORTED: "this machine does not have it",
    Availability.UNAVAILABLE: "it is there but cannot be read",
    Availability.TEMPORARILY_FAILED: "reading it failed this time",
}
_STYLES: Final = {
    Availability.KNOWN: "green",
    Availability.UNKNOWN: "yellow",
    Availability.UNSUPPORTED: "dim",
    Availability.UNAVAILABLE: "red",
    Availability.TEMPORARILY_FAILED: "bold red",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact: where it stands, whether it is known, why not and what would help, and its value in short."""

    section: str
    fact: str
    outcome: Availability
    reason: str
    value: str


def examine(
    source: Source, options: HostOptions | None = None, gpus: Section | None = None, kernel_log: str = KMSG
) -> list[Finding]:
    """Examine every fact of the host's sections, of the `gpus` section when one is given, and the live readings."""
    findings: list[Finding] = []
    for name, collected in collect_with_reasons(source, options).items():
        reasons = {place: _reason(missing) for place, missing in collected.missing.items()}
        findings += _of_section(name, collected.section, reasons)
    if gpus is not None:
        findings += _of_section("gpus", gpus, {})
    return findings + probe_readings(source, kernel_log)


def probe_readings(source: Source, kernel_log: str = KMSG) -> list[Finding]:
    """Examine what is read all the time and is no inventory: pressure and the kernel log."""
    findings = [
        _finding(
            "readings", f"pressure.{resource}", found, "" if isinstance(found, Missing) else f"{found.some_avg10:g} %"
        )
        for resource, found in read_pressure(source).items()
    ]
    if kernel_log == NO_LOG:
        return [
            *findings,
            Finding("readings", "kernelLog", Availability.UNKNOWN, "turned off by --kernel-log none", ""),
        ]
    path = STANDARD_INPUT if kernel_log == "-" else kernel_log
    log = source.ask(Fact.READS, [path])[path]
    return [*findings, _finding("readings", "kernelLog", log, f"{path} can be read")]


def render(findings: list[Finding]) -> Table:
    """Lay the findings out for a terminal."""
    counts = {outcome: sum(finding.outcome is outcome for finding in findings) for outcome in Availability}
    caption = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counts.items() if count)
    table = Table(title="What the agent sees", caption=caption, title_justify="left", caption_justify="left")
    for heading in ("section", "fact", "outcome", "value or reason"):
        table.add_column(heading, overflow="fold")
    previous = ""
    for finding in findings:
        if previous not in {"", finding.section}:
            table.add_section()
        shown = finding.section if finding.section != previous else ""
        previous = finding.section
        outcome = Text(finding.outcome.replace("_", " "), style=_STYLES[finding.outcome])
        # Text, so that brackets in a model's name are not read as markup.
        table.add_row(shown, finding.fact, outcome, Text(finding.value or finding.reason))
    return table


def _of_section(name: str, section: Section, reasons: Mapping[str, str]) -> Iterator[Finding]:
    left = {
        place: Finding(name, place, outcome, reasons.get(place) or _WORDS[outcome], "")
        for place, outcome in section.unavailable.items()
    }
    for field in msgspec.structs.fields(section):
        if field.name == "unavailable":
            continue
        for place, value in _places(field.encode_name, getattr(section, field.name)):
            if place not in left:
                yield _valued(name, place, value)
            # What an item lacks stands below the item.
            for inner in [inner for inner in left if inner == place or inner.startswith(f"{place}.")]:
                yield left.pop(inner)
    yield from left.values()


def _places(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
        yield from ((f"{name}.{index}", item) for index, item in enumerate(value))
    else:
        yield name, value


def _valued(section: str, place: str, value: object) -> Finding:
    if value is not None:
        return Finding(section, place, Availability.KNOWN, "", _short(value, place))
    if f"{section}.{place}" in _NOT_ASKED:
        return Finding(section, place, Availability.UNKNOWN, "was not asked: no folder is configured", "")
    if f"{section}.{place}" in _NONE_IS_KNOWN:
        return Finding(section, place, Availability.KNOWN, "", "none")
    return Finding(section, place, Availability.UNKNOWN, _WORDS[Availability.UNKNOWN], "")


def _finding(section: str, fact: str, answer: object, value: str) -> Finding:
    if isinstance(answer, Missing):
        return Finding(section, fact, answer.availability, _reason(answer), "")
    return Finding(section, fact, Availability.KNOWN, "", value)


def _reason(missing: Missing) -> str:
    if missing.cause is not Cause.DENIED:
        return missing.detail
    remedy = next((remedy for place, remedy in _REMEDIES if place in missing.detail), _ALLOWED)
    return f"{missing.detail}: {remedy}" if "permission denied" in missing.detail else missing.detail


def _short(value: object, name: str = "") -> str:
    match value:
        case () | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith("Bytes"):
            return f"{value / _GIB:.1f} GiB"
        case msgspec.Struct():
            fields = {field.encode_name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
            return " ".join(f"{key}={_short(item, key)}" for key, item in fields.items() if item not in {None, ()})
        case tuple():
            items = [f"({_short(item)})" if isinstance(item, msgspec.Struct) else str(item) for item in value]
            shown = " ".join(items[:_ITEMS_MAX])
            return shown if len(items) <= _ITEMS_MAX else f"{len(items)}: {shown} …"
        case _:
            return str(value)
