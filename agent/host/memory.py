"""The `memory` section."""

import re
from typing import Final, TypeVar

from agent.host.answers import Cause, Missing, Notes
from agent.host.cpu import numa_node_ids
from agent.host.files import Source, number, raw_text
from agent.host.smbios import MEMORY_DEVICE, Structure, read_structures
from domain.availability import known_text
from domain.documents.memory import Dimm, HugePages, MemorySection, NumaMemory

T = TypeVar("T")

_HUGE_PAGES: Final = "/sys/kernel/mm/hugepages"
_HUGE_PAGES_NAME: Final = re.compile(r"hugepages-(\d+)kB")
_AMOUNT: Final = re.compile(r"(?:^|\s)(\w+):\s+(\d+) kB", re.MULTILINE)
_KIB: Final = 1024
_MIB: Final = 1024 * 1024

# Offsets and codes of a type 17 structure.
_SIZE, _LOCATOR, _BANK, _TYPE, _SPEED, _SERIAL, _PART = 0x0C, 0x10, 0x11, 0x12, 0x15, 0x18, 0x1A
_EXTENDED_SIZE, _CONFIGURED_SPEED, _EXTENDED_SPEED, _EXTENDED_CONFIGURED_SPEED = 0x1C, 0x20, 0x54, 0x58
_SIZE_UNKNOWN: Final = 0xFFFF
_SIZE_EXTENDED: Final = 0x7FFF
_SIZE_IN_KIB: Final = 0x8000
_SPEED_EXTENDED: Final = 0xFFFF
_TYPES: Final = {
    0x03: "DRAM",
    0x0F: "SDRAM",
    0x12: "DDR",
    0x13: "DDR2",
    0x14: "DDR2 FB-DIMM",
    0x18: "DDR3",
    0x1A: "DDR4",
    0x1B: "LPDDR",
    0x1C: "LPDDR2",
    0x1D: "LPDDR3",
    0x1E: "LPDDR4",
    0x1F: "logical non-volatile",
    0x20: "HBM",
    0x21: "HBM2",
    0x22: "DDR5",
    0x23: "LPDDR5",
    0x24: "HBM3",
}
_NO_TEXT: Final = frozenset({"not specified", "no dimm", "unspecified", "undefined", "no module installed"})


def collect_memory(source: Source, notes: Notes) -> MemorySection:
    """Collect the memory that the kernel manages and the modules it is made of."""
    return MemorySection(
        total_bytes=notes.take("totalBytes", _amount(source, "/proc/meminfo", "MemTotal")),
        numa_nodes=_numa_nodes(source, notes),
        huge_pages=notes.take("hugePages", _huge_pages(source)) or (),
        swap_bytes=notes.take("swapBytes", _amount(source, "/proc/meminfo", "SwapTotal")),
        dimms=_dimms(source, notes),
    )


def _amount(source: Source, path: str, name: str) -> int | Missing:
    content = raw_text(source, path)
    if isinstance(content, Missing):
        return content
    amounts = {found[1]: int(found[2]) for found in _AMOUNT.finditer(content)}
    return amounts[name] * _KIB if name in amounts else Missing(Cause.ABSENT, f"{path} has no {name}")


def _numa_nodes(source: Source, notes: Notes) -> tuple[NumaMemory, ...]:
    nodes: list[NumaMemory] = []
    for node in numa_node_ids(source):
        amount = _amount(source, f"/sys/devices/system/node/node{node}/meminfo", "MemTotal")
        # A node of CPUs alone has no memory and is none of the nodes that memory is counted by.
        if amount != 0:
            nodes.append(NumaMemory(id=node, total_bytes=notes.take(f"numaNodes.{len(nodes)}.totalBytes", amount)))
    if not nodes:
        notes.take("numaNodes", Missing(Cause.ABSENT, "/sys/devices/system/node: the kernel counts no nodes"))
    return tuple(nodes)


def _huge_pages(source: Source) -> tuple[HugePages, ...] | Missing:
    names = source.entries(_HUGE_PAGES)
    if isinstance(names, Missing):
        return names
    pages = []
    for found in filter(None, map(_HUGE_PAGES_NAME.fullmatch, names)):
        count = number(source, f"{_HUGE_PAGES}/{found[0]}/nr_hugepages")
        if isinstance(count, Missing):
            return count
        pages.append(HugePages(size_kib=int(found[1]), count=count))
    return tuple(sorted(pages, key=lambda page: page.size_kib))


def _dimms(source: Source, notes: Notes) -> tuple[Dimm, ...]:
    table = notes.take("dimms", read_structures(source))
    slots = [item for item in table or () if item.kind == MEMORY_DEVICE and item.word(_SIZE) not in {None, 0}]
    locators = [item.string(_LOCATOR) for item in slots]
    named = [
        # Boards with several sockets name the slots of each alike.
        (item, f"{item.string(_BANK)} {locator}".strip() if locators.count(locator) > 1 else locator)
        for item, locator in zip(slots, locators, strict=True)
    ]
    dimms = []
    for index, (item, locator) in enumerate(sorted(named, key=lambda pair: (pair[1], pair[0].string(_SERIAL)))):
        inner = Notes()
        dimms.append(_dimm(item, locator, inner))
        notes.adopt(f"dimms.{index}", inner)
    return tuple(dimms)


def _dimm(item: Structure, locator: str, notes: Notes) -> Dimm:
    def told(name: str, value: T | None) -> T | Missing:
        return Missing(Cause.BLANK, f"SMBIOS gives no {name} of {locator}") if value is None else value

    return Dimm(
        locator=locator,
        size_bytes=notes.take("sizeBytes", told("size", _size_bytes(item))),
        type=notes.take("type", told("type", _TYPES.get(item.byte(_TYPE) or 0))),
        speed_mts=notes.take("speedMTs", told("speed", _speed(item))),
        part_number=notes.take("partNumber", told("part number", _text(item, _PART))),
        serial=notes.take("serial", told("serial", _text(item, _SERIAL))),
    )


def _size_bytes(item: Structure) -> int | None:
    size = item.word(_SIZE)
    if size is None or size == _SIZE_UNKNOWN:
        return None
    if size == _SIZE_EXTENDED:
        extended = item.double_word(_EXTENDED_SIZE)
        return None if extended is None else (extended & 0x7FFFFFFF) * _MIB
    return (size & ~_SIZE_IN_KIB) * (_KIB if size & _SIZE_IN_KIB else _MIB)


def _speed(item: Structure) -> int | None:
    for field, extended in ((_CONFIGURED_SPEED, _EXTENDED_CONFIGURED_SPEED), (_SPEED, _EXTENDED_SPEED)):
        speed = item.word(field)
        if speed == _SPEED_EXTENDED:
            speed = item.double_word(extended)
        if speed:
            return speed
    return None


def _text(item: Structure, offset: int) -> str | None:
    text = known_text(item.string(offset))
    return None if text is None or text.casefold() in _NO_TEXT else text
