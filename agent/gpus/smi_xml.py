"""Reading `nvidia-smi -q -x` into the `gpus` section.

All spellings by which a log says that it has no value are one `unknown`: they differ with the driver, not with the
hardware, so they must not change the section's bytes. Only the GPU itself adds a reason of its own: one that is lost
failed for now, and an integrated one has no memory of its own. Source: rules 1 and 16, cases A1 to A20.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree.ElementTree import Element  # the type only: parsing is guarded in smi_log

from agent.gpus import smi_names as names
from agent.gpus.fabric import COMPLETED, fabric_fact, snake
from agent.gpus.facts import (
    TEXT_LENGTH_MAX,
    Fact,
    count_fact,
    document,
    failed,
    known,
    listing,
    memory_facts,
    missing,
    text_fact,
    vbios_fact,
)
from agent.gpus.section import gpu, section
from agent.gpus.smi_log import parse_log
from domain import pci
from domain.availability import Availability, of_text
from domain.documents.gpus import (
    EccUncorrectable,
    Enumeration,
    Fabric,
    Gpu,
    GpuHealth,
    GpusSection,
    LinkWidth,
    MigInstance,
    Mode,
    RetiredPages,
    RowRemap,
)
from domain.gpu_names import is_display_adapter

UNKNOWN: Final = Availability.UNKNOWN

_FLAGS: Final = {"enabled": True, "disabled": False, "yes": True, "no": False}
_COUNT: Final = re.compile(r"([0-9]{1,10})")
_MEBIBYTES: Final = re.compile(r"([0-9]{1,10}) (?:MiB|MB)")  # drivers before 340 wrote MB for the same unit
_LANES: Final = re.compile(r"([0-9]{1,4})x")
_CHIP_PART: Final = re.compile(r"[0-9A-F]{4}-[0-9A-Z]{3}-[0-9A-Z]{2}")
_NO_CONFIGURATION_FAULT: Final = frozenset({"false", "no"})


@dataclass(frozen=True, slots=True)
class _Block:
    """One `<gpu>` of a log, read."""

    found: Fact[Gpu]
    problems: tuple[str, ...]


def read_smi_xml(content: bytes) -> GpusSection:
    """Return the section that a log tells of.

    Raises InvalidInput when the bytes are not such a log. The enumeration is complete when the log lists as many GPUs
    as it says are attached (an old log does not say) and reaches each of them.
    """
    root = parse_log(content)
    elements = root.findall("gpu")
    problems = _problems_of_count(root, len(elements))
    ranks = [None] * len(elements) if problems else _ranks(elements)
    blocks = [
        _block(element, rank)
        for element, rank in zip(elements, ranks, strict=True)
        if not is_display_adapter(_first(element, names.NAME, text_fact).value)
    ]
    problems += [problem for block in blocks for problem in block.problems]
    facts = {
        "driver_version": _first(root, names.DRIVER, text_fact),
        "cuda_driver_version": _first(root, names.CUDA, text_fact),
        "kernel_module": missing(UNKNOWN),
    }
    enumeration = Enumeration.INCOMPLETE if problems else Enumeration.COMPLETE
    return section(enumeration, problems, facts, [block.found for block in blocks])


def _problems_of_count(root: Element, listed: int) -> list[str]:
    attached = _first(root, names.ATTACHED, _count).value
    if attached is None:
        # An old log does not count; but one that neither counts nor lists was cut, and proves no absence.
        return [] if listed else ["the log neither counts nor lists any GPU"]
    return [] if attached == listed else [f"the log lists {listed} of {attached} attached GPUs"]


def _ranks(elements: Sequence[Element]) -> list[int | None]:
    """Return each GPU's index: nvidia-smi lists by PCI address, so a log in another order was reordered."""
    order = sorted(range(len(elements)), key=lambda place: (_address(elements[place]).value or "~", place))
    ranks: list[int | None] = [None] * len(elements)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def _block(element: Element, index: int | None) -> _Block:
    address = _address(element)
    lost = _is_lost(element)
    migs, cut = _mig_instances(element)
    name = _first(element, names.NAME, text_fact)
    vram, unified = memory_facts(name.value, _first(element, names.MEMORY, _mebibytes))
    found = gpu(
        {
            "uuid": _first(element, names.UUID, text_fact),
            "index": missing(UNKNOWN) if index is None else known(index),
            "name": name,
            "serial": _first(element, names.SERIAL, text_fact),
            "pci_bus_id": address,
            "numa_node": missing(UNKNOWN),
            "vram_mib": vram,
            "unified_memory": unified,
            "architecture": _first(element, names.ARCHITECTURE, text_fact),
            "compute_capability": missing(UNKNOWN),
            "vbios": _first(element, names.VBIOS, vbios_fact),
            "part_number": _first(element, names.PART_NUMBER, _board_part),
            "ecc_mode": document(Mode, _all(element, names.ECC_MODE, _flag)),
            "mig_mode": document(Mode, _all(element, names.MIG_MODE, _flag)),
            "mig_instances": migs,
            "nvlinks": missing(UNKNOWN),
            "fabric": _fabric(element),
            "health": _health(element),
            "pcie_link_width": document(LinkWidth, _all(element, names.LINK_WIDTH, _lanes)),
            "virtualization": _virtualization(element),
            "lost": known(lost or None),
        }
    )
    where = address.value or f"without a PCI address (block {index if index is not None else '?'})"
    problems = [f"GPU {where} is lost"] if lost else []
    problems += [f"a MIG device of GPU {where} has no ids"] if cut else []
    return _Block(failed(found) if lost else found, tuple(problems))


def _is_lost(element: Element) -> bool:
    """Say whether the driver lost the GPU: it says so anywhere, or fails to read what never fails on a live one."""
    for part in element:
        if part.tag not in names.VOLATILE and any("gpu is lost" in text.casefold() for text in part.itertext()):
            return True
    vital = (names.NAME, names.UUID, names.SERIAL, names.VBIOS, names.MEMORY)
    texts = [element.findtext(path) for paths in vital for path in paths]
    return any(of_text(text) is Availability.TEMPORARILY_FAILED for text in texts if text is not None)


def _address(element: Element) -> Fact[str]:
    texts = (*(element.findtext(path) for path in names.PCI), element.get("id"))
    found = next((address for text in texts if (address := pci.canonical(text)) is not None), None)
    return missing(UNKNOWN) if found is None else known(found)


def _mig_instances(element: Element) -> tuple[Fact[tuple[MigInstance, ...]], bool]:
    """Return the MIG devices by (gi, ci), and whether one could not be placed."""
    placed = []
    elements = element.findall(names.MIG_DEVICES)
    for device in elements:
        gi, ci = _first(device, names.MIG_GI, _count).value, _first(device, names.MIG_CI, _count).value
        if gi is None or ci is None:
            continue
        facts = {
            "gi": known(gi),
            "ci": known(ci),
            "uuid": _first(device, names.MIG_UUID, text_fact),
            "profile": _first(device, names.MIG_PROFILE, text_fact),
            "memory_mib": _first(device, names.MIG_MEMORY, _mebibytes),
        }
        placed.append(((gi, ci), document(MigInstance, facts)))
    placed.sort(key=lambda item: item[0])
    return listing(instance for _, instance in placed), len(placed) != len(elements)


def _fabric(element: Element) -> Fact[Fabric]:
    state = _first(element, names.FABRIC_STATE, _word).value
    configuration = _first(element, names.FABRIC_CONFIGURATION, _word).value
    issues = {name for name, paths, reported in names.FABRIC_ISSUES if _first(element, paths, _word).value == reported}
    if configuration is not None and configuration not in _NO_CONFIGURATION_FAULT:
        issues.add(f"incorrect_configuration_{configuration}")
    return fabric_fact(
        state=state,
        # A finished registration that failed says so in words that elsewhere stand for no value.
        status=_first(element, names.FABRIC_STATUS, _status if state == COMPLETED else _word).value,
        cluster_uuid=_first(element, names.FABRIC_CLUSTER, text_fact).value,
        clique_id=_first(element, names.FABRIC_CLIQUE, _count).value,
        health=_first(element, names.FABRIC_SUMMARY, _word).value,
        issues=sorted(issues),
    )


def _health(element: Element) -> Fact[GpuHealth]:
    rows = {
        **_all(element, names.REMAPPED_ROWS, _count),
        **_all(element, names.REMAPPED_ROWS_STATE, _flag),
    }
    pages = {
        **_all(element, names.RETIRED_PAGES, _count),
        "pending": _first(element, names.RETIRED_PAGES_PENDING, _flag),
    }
    errors = {name: _uncorrectable(element.find(path)) for name, path in names.ECC_COUNTERS.items()}
    return document(
        GpuHealth,
        {
            "row_remap": document(RowRemap, rows),
            "retired_pages": document(RetiredPages, pages),
            "ecc_uncorrectable": document(EccUncorrectable, errors),
        },
    )


def _uncorrectable(counters: Element | None) -> Fact[int]:
    if counters is None:
        return missing(UNKNOWN)
    for paths in names.ECC_UNCORRECTABLE:
        counts = [_first(counters, (path,), _count).value for path in paths]
        total = [count for count in counts if count is not None]
        if len(total) == len(paths):
            return count_fact(sum(total))
    return missing(UNKNOWN)


def _virtualization(element: Element) -> Fact[str]:
    # `None` is bare metal here, and `N/A` tells as little: both are the absence of a hypervisor's word.
    return known(_first(element, names.VIRTUALIZATION, _word).value)


def _all(element: Element, table: Any, read: Callable[[str], Fact[Any]]) -> dict[str, Fact[Any]]:  # noqa: ANN401
    return {field: _first(element, paths, read) for field, paths in table.items()}


def _first(element: Element, paths: names.Paths, read: Callable[[str], Fact[Any]]) -> Fact[Any]:
    """Return the first fact that is known under any of its names."""
    for path in paths:
        text = element.findtext(path)
        found = missing(UNKNOWN) if text is None else read(" ".join(text.split()))
        if found.value is not None:
            return found
    return missing(UNKNOWN)


def _number(pattern: re.Pattern[str], text: str) -> Fact[int]:
    found = pattern.fullmatch(text)
    return missing(UNKNOWN) if found is None else count_fact(int(found[1]))


def _count(text: str) -> Fact[int]:
    return _number(_COUNT, text)


def _mebibytes(text: str) -> Fact[int]:
    return _number(_MEBIBYTES, text)


def _lanes(text: str) -> Fact[int]:
    return _number(_LANES, text)


def _flag(text: str) -> Fact[bool]:
    value = _FLAGS.get(text.casefold())
    return missing(UNKNOWN) if value is None else known(value)


def _word(text: str) -> Fact[str]:
    found = text_fact(text)
    return missing(UNKNOWN) if found.value is None else known(snake(found.value))


def _status(text: str) -> Fact[str]:
    failure = of_text(text) is Availability.TEMPORARILY_FAILED
    return known(snake(text[:TEXT_LENGTH_MAX])) if failure else _word(text)


def _board_part(text: str) -> Fact[str]:
    """Read the board's part number; since driver 525 the old element names the chip's (`2330-885-A1`)."""
    found = text_fact(text)
    return missing(UNKNOWN) if found.value is not None and _CHIP_PART.fullmatch(found.value) else found
