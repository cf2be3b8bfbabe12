"""The `cpu` section: counted from the topology of the CPUs that are online, and free of anything that moves."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from agent.host.answers import Cause, Missing, Notes, first_known
from agent.host.arm_parts import IMPLEMENTERS, core_name
from agent.host.files import LARGE_READ_BYTES_MAX, Fact, Source, ask_text, names_in, raw_text, text
from agent.host.smbios import PROCESSOR, read_structures
from domain.documents.cpu import CpuSection, NumaCpus

_CPUS: Final = "/sys/devices/system/cpu"
_NODES: Final = "/sys/devices/system/node"
_NUMBERED: Final = re.compile(r"(?:cpu|node)(\d+)")
_LIST: Final = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")
_PROCESSOR_VERSION: Final = 0x10
_MODEL_KEYS: Final = ("model name", "cpu model", "cpu", "processor name", "uarch", "isa")
_FLAG_KEYS: Final = ("flags", "features")

Processor = Mapping[str, str]


def collect_cpu(source: Source, notes: Notes) -> CpuSection:
    """Collect the processors. Numbers that the kernel does not say are not guessed from others."""
    content = raw_text(source, "/proc/cpuinfo", LARGE_READ_BYTES_MAX)
    processors = content if isinstance(content, Missing) else tuple(parse_cpuinfo(content))
    online = _online(source)
    return CpuSection(
        arch=notes.take("arch", ask_text(source, Fact.MACHINE, "")),
        vendor=notes.take("vendor", processors if isinstance(processors, Missing) else _vendor(processors)),
        model=notes.take("model", processors if isinstance(processors, Missing) else _model(source, processors)),
        sockets=notes.take("sockets", _sockets(source, online, processors)),
        cores=notes.take("cores", _cores(source, online, processors)),
        threads=notes.take("threads", _threads(online, processors)),
        numa_nodes=notes.take("numaNodes", _numa_nodes(source)) or (),
        flags=notes.take("flags", processors if isinstance(processors, Missing) else _flags(processors)) or (),
        isolated=notes.take("isolated", _isolated(source)),
    )


def parse_cpuinfo(content: str) -> Iterator[Processor]:
    """Yield the blocks of /proc/cpuinfo with folded names; what stands before or after the CPUs is a block too."""
    for block in re.split(r"\n\s*\n", content):
        fields: dict[str, str] = {}
        for line in block.splitlines():
            name, _, value = line.partition(":")
            # Old ARM kernels write `Processor` (a name) before `processor` (a number), in one block.
            key = "processor name" if name.strip() == "Processor" else name.strip().casefold()
            fields.setdefault(key, value.strip())
        if fields:
            yield fields


def cpu_numbers(kernel_list: str) -> tuple[int, ...]:
    """Expand a kernel list such as `0-3,8`; raises ValueError when it is none."""
    trimmed = kernel_list.strip()
    if not trimmed:
        return ()
    if not _LIST.fullmatch(trimmed):
        raise ValueError(f"not a kernel list: {trimmed[:40]!r}")
    numbers: list[int] = []
    for part in trimmed.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _online(source: Source) -> tuple[int, ...] | Missing:
    content = text(source, f"{_CPUS}/online")
    try:
        return content if isinstance(content, Missing) else cpu_numbers(content)
    except ValueError as error:
        return Missing(Cause.FAILED, f"{_CPUS}/online: {error}")


def _threads(online: tuple[int, ...] | Missing, processors: tuple[Processor, ...] | Missing) -> int | Missing:
    if not isinstance(online, Missing) or isinstance(processors, Missing):
        return online if isinstance(online, Missing) else len(online)
    numbers = ("processor", "cpu number")  # s390x writes the latter
    return sum(any(fields.get(name, "").isdigit() for name in numbers) for fields in processors) or online


def _sockets(
    source: Source, online: tuple[int, ...] | Missing, processors: tuple[Processor, ...] | Missing
) -> int | Missing:
    counted = _distinct(source, online, ("physical_package_id",))
    return counted if isinstance(counted, int) else _counted_in_cpuinfo(processors, ("physical id", "package"), counted)


def _cores(
    source: Source, online: tuple[int, ...] | Missing, processors: tuple[Processor, ...] | Missing
) -> int | Missing:
    # The set of a core's threads names it where core ids repeat between dies and clusters.
    counted = _distinct(source, online, ("core_cpus_list", "thread_siblings_list"))
    if isinstance(counted, int) or isinstance(processors, Missing):
        return counted
    for package, core in (("physical id", "core id"), ("package", "core")):
        pairs = {(fields[package], fields[core]) for fields in processors if package in fields and core in fields}
        if pairs:
            return len(pairs)
    return counted


def _distinct(source: Source, online: tuple[int, ...] | Missing, files: tuple[str, ...]) -> int | Missing:
    if isinstance(online, Missing):
        return online
    values: set[str] = set()
    for number in online:
        value = first_known(text(source, f"{_CPUS}/cpu{number}/topology/{name}") for name in files)
        if isinstance(value, Missing):
            return value
        if value.startswith("-"):
            return Missing(Cause.ABSENT, f"{_CPUS}/cpu{number}/topology/{files[0]} says {value}: none")
        values.add(value)
    return len(values)


def _counted_in_cpuinfo(
    processors: tuple[Processor, ...] | Missing, keys: tuple[str, ...], otherwise: Missing
) -> int | Missing:
    if isinstance(processors, Missing):
        return otherwise
    values = {fields[key] for fields in processors for key in keys if key in fields}
    return len(values) or otherwise


def _vendor(processors: tuple[Processor, ...]) -> str | Missing:
    vendors = _values(processors, ("vendor_id",)) or {
        IMPLEMENTERS.get(implementer, f"implementer {implementer:#04x}")
        for fields in processors
        if (implementer := _hexadecimal(fields, "cpu implementer")) is not None
    }
    return _joined(vendors, "names no vendor")


def _model(source: Source, processors: tuple[Processor, ...]) -> str | Missing:
    names = {name for fields in processors if (name := _arm_name(fields)) is not None}
    if names:
        firmware = _firmware_models(source)
        # Altra and Graviton2 are both Neoverse-N1: only the firmware tells them apart.
        return " + ".join(sorted(names)) + (f" ({' + '.join(sorted(firmware))})" if firmware else "")
    return _joined({name for fields in processors for name in _names(fields)}, "names no model")


def _arm_name(fields: Processor) -> str | None:
    implementer, part = _hexadecimal(fields, "cpu implementer"), _hexadecimal(fields, "cpu part")
    if implementer is None or part is None:
        return None
    return (
        core_name(implementer, part) or fields.get("model name") or f"implementer {implementer:#04x} part {part:#05x}"
    )


def _names(fields: Processor) -> Iterator[str]:
    found = next((fields[key] for key in _MODEL_KEYS if fields.get(key) and not fields[key].isdigit()), None)
    if found:
        yield found
    elif "cpu family" in fields and "model" in fields:
        yield f"{fields.get('vendor_id', '')} family {fields['cpu family']} model {fields['model']}".strip()
    for key, value in fields.items():  # s390x: `processor 0: version = FF, identification = …, machine = 2964`
        if re.fullmatch(r"processor \d+", key) and "machine = " in value:
            yield f"machine {value.rsplit('machine = ', 1)[1].strip()}"


def _firmware_models(source: Source) -> set[str]:
    table = read_structures(source)
    if isinstance(table, Missing):
        return set()
    versions = {structure.string(_PROCESSOR_VERSION) for structure in table if structure.kind == PROCESSOR}
    return {version for version in versions if version.casefold() not in {"", "not specified", "unknown"}}


def _flags(processors: tuple[Processor, ...]) -> tuple[str, ...] | Missing:
    sets = [set(fields[key].split()) for fields in processors for key in _FLAG_KEYS if key in fields]
    if not sets:
        return Missing(Cause.ABSENT, "/proc/cpuinfo lists no feature flags")
    # What every CPU of a mixed machine has.
    return tuple(sorted(set.intersection(*sets)))


def _numa_nodes(source: Source) -> tuple[NumaCpus, ...] | Missing:
    names = source.entries(_NODES)
    if isinstance(names, Missing):
        return names
    nodes = []
    for number in _numbers(names, "node"):
        cpus = raw_text(source, f"{_NODES}/node{number}/cpulist")
        if isinstance(cpus, Missing):
            return cpus
        nodes.append(NumaCpus(id=number, cpus=cpus.strip()))
    return tuple(nodes)


def numa_node_ids(source: Source) -> tuple[int, ...]:
    """Return the numbers of the NUMA nodes in order."""
    return _numbers(names_in(source, _NODES), "node")


def _numbers(names: Iterable[str], kind: str) -> tuple[int, ...]:
    matches = (_NUMBERED.fullmatch(name) for name in names if name.startswith(kind))
    return tuple(sorted(int(found[1]) for found in matches if found))


def _isolated(source: Source) -> str | Missing:
    content = raw_text(source, f"{_CPUS}/isolated")
    return content if isinstance(content, Missing) else content.strip()


def _values(processors: tuple[Processor, ...], keys: tuple[str, ...]) -> set[str]:
    return {fields[key] for fields in processors for key in keys if fields.get(key)}


def _hexadecimal(fields: Processor, key: str) -> int | None:
    try:
        return int(fields[key], 16)
    except (KeyError, ValueError):
        return None


def _joined(names: set[str], otherwise: str) -> str | Missing:
    return " + ".join(sorted(names)) if names else Missing(Cause.ABSENT, f"/proc/cpuinfo {otherwise}")
