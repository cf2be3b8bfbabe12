"""The host's own files: os-release, /proc/cpuinfo, PSI and /proc/stat."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from agent.host.answers import Missing, Notes
from agent.host.cpu import collect_cpu
from agent.host.files import Source
from agent.host.os import collect_os
from agent.host.pressure import Pressure, read_cpu_times, read_pressure, steal_percent
from bench.cases.answer import Concluded
from bench.cases.lines import aligned, section_facts, unknown
from bench.cases.source import MemorySource
from domain import sections
from domain.digest import section_sha256
from domain.documents.cpu import CpuSection
from domain.documents.document import Section

_ARM_CORE: Final = re.compile(r"implementer (0x[0-9a-f]+) part (0x[0-9a-f]+)")


def collected(name: str, source: Source, collector: Callable[[Source, Notes], Section]) -> tuple[Section, Notes]:
    """Collect a section and return it as the server sees it; unlike in the agent, a collector that fails raises."""
    notes = Notes()
    section = msgspec.structs.replace(collector(source, notes), unavailable=notes.unavailable())
    content = sections.encode(section)
    return sections.verify(name, section_sha256(content), content), notes


def os_release(files: Sequence[Path]) -> Concluded:
    """Read an os-release file."""
    source = MemorySource({"/etc/os-release": files[0].read_bytes()})
    section, notes = collected("os", source, lambda host, inner: collect_os(host, None, inner))
    facts = section_facts(section, notes.missing)
    return Concluded("os collector, file as /etc/os-release", [line for line in facts if line.startswith("distro")])


def cpuinfo(files: Sequence[Path]) -> Concluded:
    """Read a /proc/cpuinfo."""
    section, notes = _cpu(files[0].read_bytes())
    return Concluded("cpu collector, file as /proc/cpuinfo, no sysfs", section_facts(section, notes.missing))


def cpu_models(files: Sequence[Path]) -> Concluded:
    """Read model names, each as the only processor of a host."""
    rows = []
    for entry in json.loads(files[0].read_bytes()):
        core = _ARM_CORE.search(entry["kind"])
        told = f"CPU implementer : {core[1]}\nCPU part : {core[2]}" if core else f"model name : {entry['raw']}"
        section, notes = _cpu(f"processor : 0\n{told}\n".encode())
        model = section.model if isinstance(section, CpuSection) else None
        fed = f"{core[1]}/{core[2]}" if core else repr(entry["raw"])
        rows.append((fed, repr(model) if model else unknown(notes.missing["model"].detail)))
    return Concluded("cpu collector, each as the model name or the ARM part of a /proc/cpuinfo", aligned(rows))


def pressure(files: Sequence[Path]) -> Concluded:
    """Read the PSI of a host that has these resources."""
    found = read_pressure(MemorySource({f"/proc/pressure/{file.name}": file.read_bytes() for file in files}))
    return Concluded("read_pressure", aligned((resource, _pressure(told)) for resource, told in found.items()))


def steal(files: Sequence[Path]) -> Concluded:
    """Read samples of /proc/stat one after the other."""
    samples = [read_cpu_times(MemorySource({"/proc/stat": file.read_bytes()})) for file in files]
    rows = [(file.name, _sample(sample), "") for file, sample in zip(files, samples, strict=True)]
    for place, (before, after) in enumerate(pairwise(samples)):
        if isinstance(before, Missing) or isinstance(after, Missing):
            continue
        percent = steal_percent(before, after)
        said = "no measure: the sample is dropped" if percent is None else f"steal {percent:.2f} %"
        rows[place + 1] = (*rows[place + 1][:2], f"{files[place].name} → {files[place + 1].name}: {said}")
    return Concluded("read_cpu_times, steal_percent", aligned(rows))


def _cpu(content: bytes) -> tuple[Section, Notes]:
    return collected("cpu", MemorySource({"/proc/cpuinfo": content}), collect_cpu)


def _pressure(told: Pressure | Missing) -> str:
    if isinstance(told, Missing):
        return unknown(f"{told.cause.value}: {told.detail}")
    full = unknown("no `full` line") if told.full_avg10 is None else f"{told.full_avg10:g} %"
    return f"some {told.some_avg10:g} %, full {full}"


def _sample(sample: object) -> str:
    match sample:
        case Missing(detail=detail):
            return unknown(detail)
        case _:
            return str(sample)
