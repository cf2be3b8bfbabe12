"""GPUs: what a section makes of devices, and that the order of a listing changes nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent.gpus.smi_xml import read_smi_xml
from bench.cases.answer import Concluded
from bench.cases.lines import aligned, unknown
from domain import sections
from domain.compute_gpus import without_display_adapters
from domain.conditions import ConditionStatus, inventory_conditions
from domain.device import Device, DeviceClass
from domain.device_plan import DevicePlan, Terms, plan_devices
from domain.devices import hardware_of
from domain.diff import diff
from domain.digest import section_sha256
from domain.documents.document import Section
from domain.documents.gpus import EccUncorrectable, Fabric, Gpu, GpusSection, RowRemap
from domain.gpu_devices import gpu_ids
from domain.ids import NodeId
from domain.jsonvalue import JsonValue

NODE: Final = NodeId("node")
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_GPU_BLOCK: Final = re.compile(rb"<gpu id=.*?</gpu>", re.DOTALL)
_SILENT: Final = unknown("not told")


def smi(files: Sequence[Path]) -> Concluded:
    """Read an `nvidia-smi -q -x` log, as it stands and with its GPUs in the opposite order."""
    content = files[0].read_bytes()
    section = read_smi_xml(content)
    reordered = verified_gpus(read_smi_xml(_reversed(content)))
    found = verified_gpus(section)
    changes = diff({"gpus": found}, {"gpus": reordered})
    same = "the same bytes" if sections.encode(section) == sections.encode(reordered) else "OTHER BYTES"
    order = ("GPUs reversed", f"{same}, {_changes(changes)}")
    return Concluded("read_smi_xml, verify, devices_of", gpu_lines(found, [order]))


def verified_gpus(section: GpusSection) -> GpusSection:
    """Return the section as the server sees it: its bytes, verified; raises InvalidSection."""
    content = sections.encode(section)
    found = sections.verify("gpus", section_sha256(content), content)
    if not isinstance(found, GpusSection):
        raise TypeError("a gpus section decodes to another document")
    return found


def gpu_lines(section: GpusSection, extra: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Write the section's own facts, a line per GPU, and what is not known."""
    seen = {"gpus": without_display_adapters(section)}
    plan = plan_devices(NODE, (), hardware_of(NODE, seen), seen, Terms(now=_NOW))
    devices = [each for each in plan.upsert if each.device_class is DeviceClass.GPU]
    own = [
        ("enumeration", f"{section.enumeration.value}{f' ({section.reason})' if section.reason else ''}"),
        ("driver", section.driver_version or _reason(section.unavailable, "driverVersion")),
        ("CUDA", section.cuda_driver_version or _reason(section.unavailable, "cudaDriverVersion")),
        ("kernel module", section.kernel_module or _reason(section.unavailable, "kernelModule")),
        ("virtualization", ", ".join(sorted({gpu.virtualization or "none told" for gpu in section.gpus}))),
        ("devices", f"{len(devices)} of {len(section.gpus)} GPUs listed"),
        ("conditions", ", ".join(_conditions(seen, plan)) or "none"),
        (
            "faults",
            "; ".join(f"{each.device_id}: {each.reason}, {each.message}" for each in plan.health.stands) or "none",
        ),
        *extra,
    ]
    if not devices:
        return aligned(own)
    head = (
        "index",
        "id",
        "name",
        "product",
        "model",
        "vram",
        "PCI",
        "bookable",
        "fabric",
        "row remap",
        "ECC unc.",
        "MIG",
    )
    told = dict(zip(gpu_ids(NODE, section), section.gpus, strict=True))
    rows = [_row(device, told[device.id]) for device in devices]
    return [*aligned(own), *aligned([head, *rows]), *_not_known(devices)]


def _conditions(seen: Mapping[str, Section], plan: DevicePlan) -> Iterator[str]:
    for said in inventory_conditions(seen, plan.conflicts):
        if said.status is ConditionStatus.TRUE:
            yield f"{said.type} ({said.message or said.reason})"


def _reversed(content: bytes) -> bytes:
    blocks = _GPU_BLOCK.findall(content)
    backwards: Iterator[bytes] = reversed(blocks)
    return _GPU_BLOCK.sub(lambda _: next(backwards), content)


def _changes(changes: Sequence[object]) -> str:
    return f"CHANGES: {changes}" if changes else "no change"


def _row(device: Device, gpu: Gpu) -> tuple[str, ...]:
    def said(value: object, *facts: str) -> str:
        return str(value) if value is not None else _reason(device.not_known, *facts)

    vram = "unified with the host's" if gpu.unified_memory else said(gpu.vram_mib, "vramGiB")
    health = gpu.health
    return (
        said(device.index, "index"),
        device.id,
        said(gpu.name, "name"),
        said(device.gpu_product, "gpuProduct"),
        said(device.gpu_model, "gpuModel"),
        vram if device.vram_gib is None else f"{vram} MiB",
        said(device.pci_bus_id, "pciBusId"),
        "yes" if device.bookable else f"no{' (pending)' if device.partition_pending else ''}",
        _fabric(device, gpu.fabric),
        said(_rows(None if health is None else health.row_remap), "health.rowRemap", "health"),
        said(_ecc(None if health is None else health.ecc_uncorrectable), "health.eccUncorrectable", "health"),
        _mig(device, gpu) + ("; LOST" if gpu.lost else ""),
    )


def _reason(reasons: Mapping[str, object], *facts: str) -> str:
    return next((unknown(str(reasons[fact])) for fact in facts if fact in reasons), _SILENT)


def _fabric(device: Device, fabric: Fabric | None) -> str:
    if fabric is None:
        return _reason(device.not_known, "fabricCluster")
    domain = f"{device.fabric_cluster}/{device.fabric_clique}" if device.fabric_cluster else "no multi-node domain"
    issues = f" ({', '.join(fabric.health_issues)})" if fabric.health_issues else ""
    summary = fabric.health or _reason(device.not_known, "fabricHealth")
    return f"{fabric.state or '?'}/{fabric.status or '?'}, {domain}, health {summary}{issues}"


def _rows(rows: RowRemap | None) -> str | None:
    if rows is None:
        return None
    counts = f"{_amount(rows.correctable)} corr {_amount(rows.uncorrectable)} unc"
    return f"{counts}, pending {_amount(rows.pending)}, failure {_amount(rows.failure)}"


def _ecc(errors: EccUncorrectable | None) -> str | None:
    return None if errors is None else f"{_amount(errors.volatile)} vol {_amount(errors.aggregate)} agg"


def _amount(value: JsonValue) -> str:
    return "unknown" if value is None else str(value).lower()


def _mig(device: Device, gpu: Gpu) -> str:
    if gpu.mig_mode is None or gpu.mig_mode.current is None:
        return f"mode {_reason(device.not_known, 'migMode', 'migMode.current')}"
    if not gpu.mig_mode.current:
        return "off"
    parts = []
    for gi in sorted({mig.gi for mig in gpu.mig_instances}):
        inside = [mig for mig in gpu.mig_instances if mig.gi == gi]
        profiles = ", ".join(f"ci{mig.ci} {mig.profile or 'profile unknown'}" for mig in inside)
        parts.append(f"gi{gi} {_amount(inside[0].memory_mib)} MiB ({profiles})")
    return f"on: {'; '.join(parts) or 'no instance'}"


def _not_known(devices: Sequence[Device]) -> list[str]:
    """Write each set of unknown facts once, with the GPUs that it holds for."""
    holders: dict[str, list[str]] = {}
    for device in devices:
        by_reason: dict[str, list[str]] = {}
        for fact, why in sorted(device.not_known.items()):
            by_reason.setdefault(why.value, []).append(fact)
        text = "; ".join(f"{why}: {', '.join(names)}" for why, names in sorted(by_reason.items()))
        holders.setdefault(text or "nothing", []).append(str(device.index) if device.index is not None else device.id)
    return [
        f"not known of {'every GPU' if len(holders) == 1 else ', '.join(who)}: {text}" for text, who in holders.items()
    ]
