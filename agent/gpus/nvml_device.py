"""One GPU, as NVML tells of it."""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent.gpus.fabric import COMPLETED, STATES, SUMMARIES, fabric_fact, mask_issues, snake
from agent.gpus.facts import Fact, count_fact, document, failed, known, memory_facts, missing, text_fact, vbios_fact
from agent.gpus.nvml_api import Handle, NvmlApi, Questions
from agent.gpus.nvml_parts import mig_instances, nvlinks, pci_address
from agent.gpus.section import gpu
from domain.availability import Availability, known_number
from domain.documents.gpus import EccUncorrectable, Fabric, Gpu, GpuHealth, LinkWidth, Mode, RetiredPages, RowRemap

UNKNOWN: Final = Availability.UNKNOWN

_ARCHITECTURES: Final[Mapping[int, str]] = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_BY_CAPABILITY: Final[Mapping[tuple[int, int], str]] = {(7, 5): "Turing", (8, 9): "Ada Lovelace"}
_BY_CAPABILITY_MAJOR: Final[Mapping[int, str]] = {
    3: "Kepler",
    5: "Maxwell",
    6: "Pascal",
    7: "Volta",
    8: "Ampere",
    9: "Hopper",
    10: "Blackwell",
    11: "Blackwell",
    12: "Blackwell",
    13: "Rubin",
}
_VIRTUALIZATIONS: Final[Mapping[int, str]] = {1: "pass_through", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
_AFFINITY_WORDS: Final = 16  # 1,024 NUMA nodes, the most a kernel is built for
_WORD_BITS: Final = 64
_SCOPE_NODE: Final = 0
_UNCORRECTED: Final = 1
_VOLATILE, _AGGREGATE = 0, 1
_SINGLE_BIT, _DOUBLE_BIT = 0, 1


@dataclass(frozen=True, slots=True)
class Reading:
    """A GPU that was read, its place, and what keeps the enumeration from being complete."""

    found: Fact[Gpu]
    address: str | None
    problems: tuple[str, ...]


def read_gpu(nvml: NvmlApi, handle: Handle, index: int) -> Reading:
    """Ask NVML for every fact of the GPU; one that fails costs itself only."""
    questions = Questions(nvml)
    ask = questions.ask
    # Identity first: a GPU that is lost on the way is still placed.
    address = pci_address(ask(nvml.nvmlDeviceGetPciInfo, handle))
    uuid = _text(ask(nvml.nvmlDeviceGetUUID, handle))
    name = _text(ask(nvml.nvmlDeviceGetName, handle))
    vram, unified = memory_facts(name.value, _mebibytes(ask(nvml.nvmlDeviceGetMemoryInfo, handle)))
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    mig_mode = _mode(ask(nvml.nvmlDeviceGetMigMode, handle))
    migs, migs_cut = mig_instances(questions, handle, mig_mode)
    facts: dict[str, Fact[Any]] = {
        "uuid": uuid,
        "index": known(index),
        "name": name,
        "serial": _text(ask(nvml.nvmlDeviceGetSerial, handle)),
        "pci_bus_id": address,
        "numa_node": _numa_node(ask(nvml.nvmlDeviceGetMemoryAffinity, handle, _AFFINITY_WORDS, _SCOPE_NODE)),
        "vram_mib": vram,
        "unified_memory": unified,
        "architecture": _architecture(ask(nvml.nvmlDeviceGetArchitecture, handle), capability.value),
        "compute_capability": _then(capability, lambda pair: known(f"{pair[0]}.{pair[1]}")),
        "vbios": _then(ask(nvml.nvmlDeviceGetVbiosVersion, handle), vbios_fact),
        "part_number": _text(ask(nvml.nvmlDeviceGetBoardPartNumber, handle)),
        "ecc_mode": _mode(ask(nvml.nvmlDeviceGetEccMode, handle)),
        "mig_mode": mig_mode,
        "mig_instances": migs,
        "nvlinks": nvlinks(questions, handle),
        "fabric": _fabric(questions, handle),
        "health": _health(questions, handle),
        "pcie_link_width": _link_width(questions, handle),
        "virtualization": known(_VIRTUALIZATIONS.get(ask(nvml.nvmlDeviceGetVirtualizationMode, handle).value or 0)),
    }
    facts["lost"] = known(questions.lost or None)
    found = gpu(facts)
    where = f"GPU {address.value or f'with index {index}'}"
    problems = _problems(where, questions, uuid, cut=migs_cut)
    return Reading(failed(found) if questions.lost else found, address.value, problems)


def _problems(where: str, questions: Questions, uuid: Fact[str], *, cut: bool) -> tuple[str, ...]:
    if questions.lost:
        return (f"{where} is lost",)
    # Without its UUID a GPU that is there would look like one that went missing; integrated ones have none by nature.
    nameless = bool(set(uuid.gaps.values()) & {Availability.TEMPORARILY_FAILED, Availability.UNAVAILABLE})
    return (
        *([f"{where} does not tell its UUID"] if nameless else []),
        *([f"the MIG devices of {where} could not all be listed"] if cut else []),
    )


def _then(fact: Fact[Any], read: Callable[[Any], Fact[Any]]) -> Fact[Any]:
    return fact if fact.value is None else read(fact.value)


def _text(fact: Fact[str]) -> Fact[str]:
    return _then(fact, text_fact)


def _count(fact: Fact[int]) -> Fact[int]:
    return _then(fact, count_fact)


def _mebibytes(fact: Fact[Any]) -> Fact[int]:
    """Read the total in MiB; a total of nothing is no board's memory."""
    total = None if fact.value is None else known_number(int(fact.value.total))
    return fact if fact.value is None else count_fact(None if not total else total >> 20)


def _mode(fact: Fact[Any]) -> Fact[Mode]:
    return _then(fact, lambda pair: document(Mode, {"current": _flag(pair[0]), "pending": _flag(pair[1])}))


def _flag(number: int) -> Fact[bool]:
    return known(value=bool(number)) if number in {0, 1} else missing(UNKNOWN)


def _numa_node(fact: Fact[Any]) -> Fact[int]:
    """Read the node set; a GPU near several nodes, or none, is attached to no one node."""

    def nodes(words: Any) -> Fact[int]:  # noqa: ANN401 - an array of the bindings
        mask = sum(int(word) << _WORD_BITS * place for place, word in enumerate(words))
        return known(mask.bit_length() - 1) if mask.bit_count() == 1 else missing(UNKNOWN)

    return _then(fact, nodes)


def _architecture(fact: Fact[int], capability: tuple[int, int] | None) -> Fact[str]:
    """Name the architecture; an enumerator newer than this table is read from the compute capability."""
    named = _ARCHITECTURES.get(fact.value if fact.value is not None else -1)
    if named is None and capability is not None:
        major, minor = capability
        named = _BY_CAPABILITY.get((major, minor)) or _BY_CAPABILITY_MAJOR.get(major)
    if named is not None:
        return known(named)
    return missing(UNKNOWN) if fact.value is not None else Fact(None, fact.gaps)


def _fabric(questions: Questions, handle: Handle) -> Fact[Fabric]:
    nvml = questions.nvml
    answer: Fact[Any] = missing(UNKNOWN)
    for structure in (nvml.c_nvmlGpuFabricInfo_v3_t, nvml.c_nvmlGpuFabricInfo_v2_t):
        info = structure()
        answer = questions.ask(nvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info))
        if not answer.gaps:
            return _registration(nvml, info)
    return Fact(None, answer.gaps)


def _registration(nvml: NvmlApi, info: Any) -> Fact[Fabric]:  # noqa: ANN401 - a structure of the bindings
    state = STATES.get(info.state)
    if state is None:
        return missing(Availability.UNSUPPORTED)
    done = state == COMPLETED  # before that, status, cluster and clique are not filled in
    mask = known_number(info.healthMask)
    return fabric_fact(
        state=state,
        status=("success" if info.status == 0 else snake(nvml.nvmlErrorString(info.status))) if done else None,
        cluster_uuid=_uuid_text(bytes(info.clusterUuid)) if done else None,
        clique_id=count_fact(info.cliqueId).value if done else None,
        health=SUMMARIES.get(getattr(info, "healthSummary", 0)),
        issues=mask_issues(mask) if mask is not None else (),
    )


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _health(questions: Questions, handle: Handle) -> Fact[GpuHealth]:
    nvml, ask = questions.nvml, questions.ask
    rows = _then(ask(nvml.nvmlDeviceGetRemappedRows, handle), _row_remap)
    pages = document(
        RetiredPages,
        {
            "sbe": _length(ask(nvml.nvmlDeviceGetRetiredPages, handle, _SINGLE_BIT)),
            "dbe": _length(ask(nvml.nvmlDeviceGetRetiredPages, handle, _DOUBLE_BIT)),
            "pending": _then(ask(nvml.nvmlDeviceGetRetiredPagesPendingStatus, handle), _flag),
        },
    )
    errors = document(
        EccUncorrectable,
        {
            "volatile": _count(ask(nvml.nvmlDeviceGetTotalEccErrors, handle, _UNCORRECTED, _VOLATILE)),
            "aggregate": _count(ask(nvml.nvmlDeviceGetTotalEccErrors, handle, _UNCORRECTED, _AGGREGATE)),
        },
    )
    return document(GpuHealth, {"row_remap": rows, "retired_pages": pages, "ecc_uncorrectable": errors})


def _row_remap(rows: Any) -> Fact[RowRemap]:  # noqa: ANN401 - a tuple of the bindings
    correctable, uncorrectable, pending, failure = rows
    return document(
        RowRemap,
        {
            "correctable": count_fact(correctable),
            "uncorrectable": count_fact(uncorrectable),
            "pending": _flag(pending),
            "failure": _flag(failure),
        },
    )


def _length(fact: Fact[Any]) -> Fact[int]:
    return _then(fact, lambda pages: known(len(pages)))


def _link_width(questions: Questions, handle: Handle) -> Fact[LinkWidth]:
    nvml = questions.nvml
    return document(
        LinkWidth,
        {
            "current": _count(questions.ask(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle)),
            "max": _count(questions.ask(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle)),
        },
    )
