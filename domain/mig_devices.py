"""MIG instances of a GPU as devices."""

from collections.abc import Iterator, Mapping
from typing import Final

from domain.availability import Availability
from domain.device import MIB_PER_GIB, Device, DeviceClass
from domain.documents.gpus import Gpu, MigInstance
from domain.facts import facts
from domain.ids import DeviceId, NodeId

LIST: Final = "migInstances"
_ATTRIBUTES: Final = ("gi", "ci", "uuid", "profile")
_RENAMED: Final = {"memoryMiB": "vramGiB"}


def mig_devices(
    node_id: NodeId, gpu_id: DeviceId, gpu: Gpu, unavailable: Mapping[str, Availability]
) -> Iterator[Device]:
    """Return the instances of a GPU; `unavailable` names its facts that are not known.

    Memory is the GPU instance's, which its compute instances share: `sharesMemory` says that there are several, so
    that nobody adds it up.
    """
    memory = _memory(gpu)
    by_gpu_instance = [instance.gi for instance in gpu.mig_instances]
    for position, instance in enumerate(gpu.mig_instances):
        mib = memory.get(instance.gi)
        shared = {"sharesMemory": True} if by_gpu_instance.count(instance.gi) > 1 else {}
        yield Device(
            id=mig_id(gpu_id, instance),
            node_id=node_id,
            device_class=DeviceClass.GPU_MIG,
            parent_id=gpu_id,
            vram_gib=None if mib is None else mib / MIB_PER_GIB,
            attributes={**facts(instance, _ATTRIBUTES), **shared},
            not_known=_not_known(position, unavailable),
        )


def mig_id(gpu_id: DeviceId, instance: MigInstance) -> DeviceId:
    """Return the id of an instance: by its place in the GPU, because its UUID changes with the layout."""
    return DeviceId(f"{gpu_id}/gi{instance.gi}/ci{instance.ci}")


def _memory(gpu: Gpu) -> dict[int, int]:
    """Return MiB per GPU instance, whichever of its compute instances told it."""
    found: dict[int, int] = {}
    for instance in gpu.mig_instances:
        if instance.memory_mib is not None:
            found[instance.gi] = max(instance.memory_mib, found.get(instance.gi, 0))
    return found


def _not_known(position: int, unavailable: Mapping[str, Availability]) -> dict[str, Availability]:
    prefix = f"{LIST}.{position}."
    own = {path.removeprefix(prefix): why for path, why in unavailable.items() if path.startswith(prefix)}
    return {_RENAMED.get(fact, fact): why for fact, why in own.items()}
