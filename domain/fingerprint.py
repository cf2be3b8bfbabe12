"""The fingerprint of a node: changes with its driver or hardware, and with nothing transient (rule 7)."""

import hashlib
from collections.abc import Mapping

import msgspec

from domain import pci
from domain.availability import Availability, known_number, known_text
from domain.changes.gpus import is_complete
from domain.documents.document import Section
from domain.documents.gpus import Gpu, GpusSection
from domain.documents.os import Distro, OsSection
from domain.jsonvalue import JsonValue
from domain.sections import section_of

_TRANSIENT = (Availability.TEMPORARILY_FAILED, Availability.UNAVAILABLE)
_HOST_FACTS = frozenset({"distro", "distro.id", "distro.version", "kernel", "arch"})
_GPU_FACTS = frozenset({"uuid", "name", "pciBusId", "vramMiB", "computeCapability"})


def fingerprint(identity_key: str, sections: Mapping[str, Section]) -> str | None:
    """Return the SHA-256, or None when something that goes into it cannot be read now: the last one stays."""
    host, gpus = section_of(sections, OsSection), section_of(sections, GpusSection)
    if host is None or gpus is None or not is_complete(gpus) or _cannot_be_read(host, gpus):
        return None
    distro = host.distro or Distro()
    facts: list[JsonValue] = [
        identity_key,
        [known_text(each) for each in (distro.id, distro.version, host.kernel, host.arch)],
        sorted((_facts(gpus, gpu) for gpu in gpus.gpus), key=msgspec.json.encode),
    ]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


def _facts(section: GpusSection, gpu: Gpu) -> list[JsonValue]:
    return [
        known_text(gpu.uuid),
        known_text(gpu.name),
        pci.canonical(gpu.pci_bus_id),
        known_number(gpu.vram_mib),
        known_text(gpu.compute_capability),
        known_text(section.driver_version),
        known_text(section.cuda_driver_version),
    ]


def _cannot_be_read(host: OsSection, gpus: GpusSection) -> bool:
    if any(gpu.lost for gpu in gpus.gpus):
        return True
    failing = [fact for fact, why in gpus.unavailable.items() if why in _TRANSIENT]
    return any(
        fact in {"driverVersion", "cudaDriverVersion"} or fact.partition("gpus.")[2].partition(".")[2] in _GPU_FACTS
        for fact in failing
    ) or any(fact in _HOST_FACTS for fact, why in host.unavailable.items() if why in _TRANSIENT)
