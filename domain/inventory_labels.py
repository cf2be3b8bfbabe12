"""Labels that a node's inventory gives it (rule 6).

Silence is not absence: a section that did not come, GPUs that were not counted to the end and a fact that could not be
read keep the labels they are the source of. A label goes only with what it told of.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from domain.availability import Availability, known_text
from domain.changes.gpus import is_complete
from domain.device import Device, DeviceClass
from domain.documents.cpu import CpuSection
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.memory import MemorySection
from domain.documents.os import OsSection
from domain.label_text import label_value
from domain.sections import section_of
from domain.selector import VALUE_LENGTH_MAX

MIXED: Final = "mixed"
"""The value where a node's GPUs disagree."""

INVENTORY_KEYS: Final = frozenset(
    {
        "gpu.present",
        "gpu.count",
        "gpu.product",
        "gpu.model",
        "gpu.vramGiB",
        "cuda.driver.major",
        "nvidia.driver.version",
        "mig.capable",
        "fabric.domain",
        "cpu.arch",
        "cpu.vendor",
        "cpu.model",
        "cpu.sockets",
        "cpu.cores",
        "cpu.threads",
        "numa.nodes",
        "memory.GiB",
        "hugepages.1GiB",
        "os.distro",
        "os.kernel",
        "kvm.available",
    }
)

_GIB: Final = 2**30
_HUGE_PAGE_KIB: Final = 2**20
_MARKS: Final = re.compile(r"\((?:R|TM|SM)\)|[®™℠]", re.IGNORECASE)
_NOT_IN_MODEL: Final = re.compile(r"[^A-Za-z0-9._]+")

# What is told of labels: a value, or None for one that is no more. A label that is not told of stays as it is.
Told = dict[str, str | None]
# A host's label by its key: the fact it is of, as `unavailable` names it, and its value.
_Facts = Mapping[str, tuple[str, str | None]]


def inventory_labels(
    known: Mapping[str, str], sections: Mapping[str, Section], devices: Iterable[Device]
) -> dict[str, str]:
    """Return a node's inventory labels: `known` ones, with what its sections and planned devices tell now."""
    gpus = [device for device in devices if device.device_class is DeviceClass.GPU and not device.missing]
    labels: Told = {key: value for key, value in known.items() if key in INVENTORY_KEYS}
    if (cpu := section_of(sections, CpuSection)) is not None:
        labels |= _told(cpu, _cpu(cpu))
    if (memory := section_of(sections, MemorySection)) is not None:
        labels |= _told(memory, _memory(memory))
    if (system := section_of(sections, OsSection)) is not None:
        labels |= _told(system, _os(system))
    section = section_of(sections, GpusSection)
    if section is not None and is_complete(section):
        labels |= _driver(section, gpus) | _gpus(gpus)
    return {key: value for key, value in labels.items() if value is not None}


def cpu_model(name: str | None) -> str | None:
    """Return a processor's name without trademark marks; what else is outside A-Z a-z 0-9 . _ becomes one `-`."""
    text = known_text(name)
    if text is None:
        return None
    return _NOT_IN_MODEL.sub("-", _MARKS.sub("", text))[:VALUE_LENGTH_MAX].strip("-") or None


def _cpu(cpu: CpuSection) -> _Facts:
    # Nodes of memory alone, such as GPUs bring, are no places to run on.
    numa_nodes = sum(bool(node.cpus.strip()) for node in cpu.numa_nodes)
    return {
        "cpu.arch": ("arch", label_value(cpu.arch)),
        "cpu.vendor": ("vendor", label_value(cpu.vendor)),
        "cpu.model": ("model", cpu_model(cpu.model)),
        "cpu.sockets": ("sockets", _number(cpu.sockets)),
        "cpu.cores": ("cores", _number(cpu.cores)),
        "cpu.threads": ("threads", _number(cpu.threads)),
        "numa.nodes": ("numaNodes", _number(numa_nodes or None)),
    }


def _memory(memory: MemorySection) -> _Facts:
    total = None if memory.total_bytes is None else round(memory.total_bytes / _GIB)
    # The sizes that a kernel serves are listed together: one that is not among them has no page.
    pages = sum(page.count for page in memory.huge_pages if page.size_kib == _HUGE_PAGE_KIB)
    return {
        "memory.GiB": ("totalBytes", _number(total)),
        "hugepages.1GiB": ("hugePages", _number(pages if memory.huge_pages else None)),
    }


def _os(system: OsSection) -> _Facts:
    return {
        "os.distro": ("distro.id", label_value(system.distro.id if system.distro is not None else None)),
        "os.kernel": ("kernel", label_value(system.kernel)),
        "kvm.available": ("kvmAvailable", _flag(system.kvm_available)),
    }


def _driver(section: GpusSection, gpus: Sequence[Device]) -> Told:
    cuda = known_text(section.cuda_driver_version)
    told = _told(
        section,
        {
            "nvidia.driver.version": ("driverVersion", label_value(section.driver_version)),
            "cuda.driver.major": ("cudaDriverVersion", label_value(cuda.partition(".")[0] if cuda else None)),
        },
    )
    # A machine without GPUs needs no driver: there silence is no failure to ask it.
    return told if gpus else {"nvidia.driver.version": None, "cuda.driver.major": None, **told}


def _gpus(gpus: Sequence[Device]) -> Told:
    return {
        "gpu.present": _flag(bool(gpus)),
        "gpu.count": str(len(gpus)),
        **_agreed("gpu.product", gpus, "gpuProduct", lambda gpu: label_value(gpu.gpu_product)),
        **_agreed("gpu.model", gpus, "gpuModel", lambda gpu: label_value(gpu.gpu_model)),
        **_agreed("gpu.vramGiB", gpus, "vramGiB", _vram),
        **_agreed("mig.capable", gpus, "migCapable", lambda gpu: _flag(gpu.mig_capable)),
        **_fabric(gpus),
    }


def _agreed(key: str, gpus: Sequence[Device], fact: str, value: Callable[[Device], str | None]) -> Told:
    """Tell what all GPUs that say something say; nothing when none does, unless none of them can."""
    values = {said for gpu in gpus if (said := value(gpu)) is not None}
    if not values:
        can_none = all(gpu.not_known.get(fact) is Availability.UNSUPPORTED for gpu in gpus)
        return {key: None} if can_none else {}
    return {key: values.pop() if len(values) == 1 else MIXED}


def _fabric(gpus: Sequence[Device]) -> Told:
    """Tell the domain that every GPU is joined to: a node that is half joined is in none (rule 14)."""
    outside = [gpu for gpu in gpus if gpu.fabric_cluster is None]
    if any(
        gpu.not_known.get("fabricCluster", Availability.UNSUPPORTED) is not Availability.UNSUPPORTED for gpu in outside
    ):
        return {}  # joined to nothing and not asked are two things
    return {"fabric.domain": None} if outside else _agreed("fabric.domain", gpus, "fabricCluster", _domain)


def _domain(gpu: Device) -> str | None:
    # A clique's number has no meaning outside its cluster.
    parts = (gpu.fabric_cluster, gpu.fabric_clique)
    return label_value(".".join(part for part in parts if part is not None))


def _vram(gpu: Device) -> str | None:
    # Boards of one product report some MiB more or less; that is no disagreement.
    return None if gpu.vram_gib is None else str(round(gpu.vram_gib))


def _told(section: Section, facts: _Facts) -> Told:
    told: Told = {}
    for key, (fact, value) in facts.items():
        if value is not None or _cannot_have(section, fact):
            told[key] = value
    return told


def _cannot_have(section: Section, fact: str) -> bool:
    parts = fact.split(".")
    paths = (".".join(parts[: count + 1]) for count in range(len(parts)))
    return any(section.unavailable.get(path) is Availability.UNSUPPORTED for path in paths)


def _number(number: int | None) -> str | None:
    return None if number is None else str(number)


def _flag(flag: bool | None) -> str | None:  # noqa: FBT001 - the fact itself
    return None if flag is None else str(flag).lower()
