"""The `gpus` section of a made-up node."""

from agent.simulator.material import Material
from agent.simulator.models import GpuPart
from agent.simulator.node import NodeState, generation
from agent.simulator.troubles import Trouble
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
    NvLink,
    RowRemap,
)

_INACTIVE_LINK = 4
_FULL_WIDTH = LinkWidth(current=16, max=16)
_ON, _OFF = Mode(current=True, pending=True), Mode(current=False, pending=False)


def gpus_section(material: Material, state: NodeState) -> GpusSection:
    """Return the GPUs; a host without any has counted them completely."""
    part = state.server.gpu
    if part is None:
        return GpusSection(enumeration=Enumeration.COMPLETE)
    driver, cuda = state.versions
    places = state.server.gpu_places
    # A cut enumeration answers for all but the last; a GPU of `lost_gpus` is gone from PCI too, and truly missing.
    answering = len(places) - 1 if state.cut_short else len(places)
    slots = [slot for slot in range(answering) if slot not in state.lost_gpus]
    problems = [f"the driver counts {len(places)} GPUs, {answering} answer"] if state.cut_short else []
    problems += [f"GPU {places[slot].pci_bus_id} is lost" for slot in slots if state.has(Trouble.FALLEN_OFF, slot)]
    return GpusSection(
        enumeration=Enumeration.INCOMPLETE if problems else Enumeration.COMPLETE,
        reason="; ".join(problems) or None,
        driver_version=driver,
        cuda_driver_version=cuda,
        kernel_module="open",
        gpus=tuple(_gpu(material, state, part, slot, index) for index, slot in enumerate(slots)),
    )


def _gpu(material: Material, state: NodeState, part: GpuPart, slot: int, index: int) -> Gpu:
    place = state.server.gpu_places[slot]
    what = _part(state, slot)
    layout = part.mig_layouts[generation(state.mig, slot)] if part.mig_layouts else ()
    return Gpu(
        uuid=gpu_uuid(material, state, slot),
        index=index,
        name=part.name,
        serial=material.digits(f"{what} serial", 13),
        pci_bus_id=place.pci_bus_id,
        numa_node=place.numa_node,
        vram_mib=part.vram_mib,
        unified_memory=False,
        architecture=part.architecture,
        compute_capability=part.compute_capability,
        vbios=part.vbios,
        part_number=part.part_number,
        ecc_mode=_ON,
        mig_mode=(_ON if layout else _OFF) if part.mig_layouts else None,
        mig_instances=tuple(
            MigInstance(
                gi=piece.gi,
                ci=0,
                uuid=f"MIG-{material.uuid(f'{what} mig {piece.gi} {piece.profile}')}",
                profile=piece.profile,
                memory_mib=piece.memory_mib,
            )
            for piece in layout
        ),
        nvlinks=_nvlinks(part, inactive=any(state.has(trouble, slot) for trouble in _LINK_TROUBLES)),
        fabric=_fabric(failed=state.has(Trouble.FABRIC_FAILED, slot)) if part.nvlinks else None,
        health=_health(state, slot),
        pcie_link_width=_FULL_WIDTH,
        lost=state.has(Trouble.FALLEN_OFF, slot) or None,
    )


def gpu_uuid(material: Material, state: NodeState, slot: int) -> str:
    """Return the UUID of the card that is in a slot."""
    return f"GPU-{material.uuid(_part(state, slot))}"


def _part(state: NodeState, slot: int) -> str:
    return f"gpu {slot} {generation(state.cards, slot)}"


_LINK_TROUBLES = (Trouble.NVLINK, Trouble.NVLINK5)


def _nvlinks(part: GpuPart, *, inactive: bool) -> tuple[NvLink, ...]:
    switches = part.switches
    return tuple(
        NvLink(
            link=link,
            state="inactive" if inactive and link == _INACTIVE_LINK else "active",
            remote=switches[link * len(switches) // part.nvlinks] if switches else None,
        )
        for link in range(part.nvlinks)
    )


def _fabric(*, failed: bool) -> Fabric:
    if failed:
        return Fabric(state="completed", status="Unknown Error")
    return Fabric(state="completed", status="success", health="healthy")


def _health(state: NodeState, slot: int) -> GpuHealth:
    pending, failure = state.has(Trouble.REMAP_PENDING, slot), state.has(Trouble.REMAP_FAILED, slot)
    errors = int(state.has(Trouble.VOLATILE_ECC, slot))
    return GpuHealth(
        row_remap=RowRemap(correctable=0, uncorrectable=int(pending or failure), pending=pending, failure=failure),
        ecc_uncorrectable=EccUncorrectable(volatile=errors, aggregate=errors),
    )
