"""The seven host sections of a source, each collected on its own and in time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from agent.host.answers import Cause, Missing, Notes
from agent.host.cpu import collect_cpu
from agent.host.deadline import Probes, TimedOut
from agent.host.disks import collect_disks
from agent.host.files import Source
from agent.host.filesystems import collect_filesystems
from agent.host.images import collect_images
from agent.host.memory import collect_memory
from agent.host.nics import collect_nics
from agent.host.options import HostOptions
from agent.host.os import collect_os
from agent.host.system import collect_system
from domain.documents.disks import DisksSection
from domain.documents.document import Section
from domain.sections import SECTION_TYPES

SECTION_SECONDS_MAX: Final = 30.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Collected:
    """A section, and in words why each fact it names as unavailable is not known."""

    section: Section
    missing: dict[str, Missing]


def collect(source: Source, options: HostOptions | None = None, probes: Probes | None = None) -> dict[str, Section]:
    """Return the seven host sections by name; equal hosts give equal bytes.

    A collector that fails or takes longer than SECTION_SECONDS_MAX yields its section with every fact
    `temporarily_failed` and does not touch the others. Pass the same `probes` every round, so that a call that hangs
    for good costs one thread.
    """
    return {name: found.section for name, found in collect_with_reasons(source, options, probes).items()}


def collect_with_reasons(
    source: Source, options: HostOptions | None = None, probes: Probes | None = None
) -> dict[str, Collected]:
    """Return what `collect` does, with the reasons."""
    collectors = _collectors(source, options or HostOptions())
    runner = probes or Probes()
    return {name: _collect_one(runner, name, collector) for name, collector in collectors.items()}


def _collectors(source: Source, options: HostOptions) -> dict[str, Callable[[Notes], Section]]:
    return {
        "system": lambda notes: collect_system(source, notes),
        "cpu": lambda notes: collect_cpu(source, notes),
        "memory": lambda notes: collect_memory(source, notes),
        "nics": lambda notes: collect_nics(source, options.fabrics, notes),
        "disks": lambda notes: DisksSection(
            disks=collect_disks(source, notes), filesystems=collect_filesystems(source, notes)
        ),
        "os": lambda notes: collect_os(source, options.engine_dirs, notes),
        "images": lambda notes: collect_images(source, options.image_dirs, options.weights_dirs, notes),
    }


def _collect_one(probes: Probes, name: str, collector: Callable[[Notes], Section]) -> Collected:
    notes = Notes()
    try:
        section = probes.run(f"section {name}", lambda: collector(notes), SECTION_SECONDS_MAX)
    except TimedOut as error:
        return _failed(name, Missing(Cause.TIMED_OUT, str(error)))
    except Exception as error:  # noqa: BLE001 - a bug in one collector must not take the other sections with it
        _log.exception("collector failed", section=name)
        return _failed(name, Missing(Cause.FAILED, f"the collector failed: {error!r}"))
    return Collected(msgspec.structs.replace(section, unavailable=notes.unavailable()), notes.missing)


def _failed(name: str, reason: Missing) -> Collected:
    kind = SECTION_TYPES[name]
    missing = {field.encode_name: reason for field in msgspec.structs.fields(kind) if field.name != "unavailable"}
    return Collected(kind(unavailable=dict.fromkeys(missing, reason.availability)), missing)
