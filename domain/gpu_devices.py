"""The GPUs of a node as devices."""

from collections.abc import Mapping, Sequence
from typing import Final

from domain import pci
from domain.availability import Availability, known_text
from domain.device import MIB_PER_GIB, Device, DeviceClass, not_known_by_item, place_id
from domain.documents.gpus import Fabric, Gpu, GpusSection
from domain.facts import facts
from domain.gpu_links import reported_links
from domain.gpu_names import name_of
from domain.ids import DeviceId, NodeId
from domain.jsonvalue import JsonValue
from domain.mig_devices import LIST, mig_devices
from domain.sections import gpu_uuid

_ATTRIBUTES: Final = (
    "name",
    "serial",
    "part_number",
    "vbios",
    "unified_memory",
    "virtualization",
    "ecc_mode",
    "mig_mode",
    "pcie_link_width",
    "health",
    "lost",
)
_FABRIC_ATTRIBUTES: Final = {"state": "fabricState", "status": "fabricStatus", "health": "fabricHealth"}
# Facts that devices name otherwise than the section does.
_RENAMED: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name", "gpuProduct", "gpuModel"),
    "vramMiB": ("vramGiB",),
    "nvlinks": ("nvlinkPeers",),
    "migMode": ("migMode", "migCapable"),
    "migMode.current": ("migMode.current", "migCapable"),
    "fabric": ("fabricCluster", "fabricClique"),
    "fabric.clusterUuid": ("fabricCluster",),
    "fabric.cliqueId": ("fabricClique",),
    "fabric.state": ("fabricState",),
    "fabric.status": ("fabricStatus",),
    "fabric.health": ("fabricHealth",),
}


def gpu_devices(node_id: NodeId, section: GpusSection) -> tuple[Device, ...]:
    """Return whole GPUs and their MIG instances; which of them are atoms is for the pool to say."""
    ids = gpu_ids(node_id, section)
    peers = _nvlink_peers(ids, section.gpus)
    unavailable = not_known_by_item(section, "gpus")
    driver = known_text(section.driver_version)
    no_driver = section.unavailable.get("driverVersion")
    devices = []
    for position, (device_id, gpu) in enumerate(zip(ids, section.gpus, strict=True)):
        reasons = unavailable.get(str(position), {})
        not_known = {
            name: why
            for fact, why in reasons.items()
            if not fact.startswith(f"{LIST}.")
            for name in _RENAMED.get(fact, (fact,))
        }
        mig_capable = _mig_capable(gpu, reasons)
        if no_driver is not None:
            not_known["driverVersion"] = no_driver
        cluster, clique = _domain(gpu.fabric)
        named = name_of(gpu)
        devices.append(
            Device(
                id=device_id,
                node_id=node_id,
                device_class=DeviceClass.GPU,
                healthy=not gpu.lost,
                gpu_product=None if named is None else named.product,
                gpu_model=None if named is None else named.model,
                vram_gib=None if gpu.vram_mib is None else gpu.vram_mib / MIB_PER_GIB,
                index=gpu.index,
                pci_bus_id=pci.canonical(gpu.pci_bus_id),
                numa_node=gpu.numa_node,
                architecture=known_text(gpu.architecture),
                compute_capability=known_text(gpu.compute_capability),
                driver_version=driver,
                mig_capable=mig_capable,
                nvlink_peers=peers[device_id],
                fabric_cluster=cluster,
                fabric_clique=clique,
                attributes={**facts(gpu, _ATTRIBUTES), **reported_links(gpu), **_fabric_attributes(gpu.fabric)},
                not_known=not_known,
            )
        )
        devices.extend(mig_devices(node_id, device_id, gpu, reasons))
    return tuple(devices)


def gpus_without_layout(node_id: NodeId, section: GpusSection) -> list[DeviceId]:
    """Return the GPUs whose MIG instances could not be listed; one without MIG has none."""
    unavailable = not_known_by_item(section, "gpus")
    return [
        device_id
        for position, (device_id, gpu) in enumerate(zip(gpu_ids(node_id, section), section.gpus, strict=True))
        if not gpu.mig_instances and _is_silent(gpu, unavailable.get(str(position), {}))
    ]


def gpu_ids(node_id: NodeId, section: GpusSection) -> list[DeviceId]:
    """Return an id per GPU: its UUID, else its PCI address within the node."""
    ids = []
    integrated = _integrated(section.gpus)
    for gpu in section.gpus:
        uuid, address = gpu_uuid(gpu), pci.canonical(gpu.pci_bus_id)
        if uuid is not None:
            ids.append(DeviceId(uuid))
        elif address is not None:
            ids.append(place_id(node_id, DeviceClass.GPU, address))
        else:
            ids.append(place_id(node_id, DeviceClass.GPU, f"integrated-{integrated.index(id(gpu))}"))
    return ids


def _integrated(gpus: Sequence[Gpu]) -> list[int]:
    """Return the GPUs that have no address, being built into the processor, in an order that is not the listing's.

    A machine has one of those; several that nothing tells apart are all the same.
    """
    nameless = [gpu for gpu in gpus if gpu_uuid(gpu) is None and pci.canonical(gpu.pci_bus_id) is None]
    return [id(gpu) for gpu in sorted(nameless, key=repr)]


def _is_silent(gpu: Gpu, unavailable: Mapping[str, Availability]) -> bool:
    return LIST in unavailable or _mig_capable(gpu, unavailable) is None


def _nvlink_peers(ids: Sequence[DeviceId], gpus: Sequence[Gpu]) -> dict[DeviceId, tuple[DeviceId, ...]]:
    """Return each GPU's peers; a link that one end reports joins both."""
    at = {address: each for each, gpu in zip(ids, gpus, strict=True) if (address := pci.canonical(gpu.pci_bus_id))}
    peers: dict[DeviceId, set[DeviceId]] = {each: set() for each in ids}
    for each, gpu in zip(ids, gpus, strict=True):
        for link in gpu.nvlinks:
            remote = at.get(pci.canonical(link.remote) or "")
            if remote is not None and remote != each:
                peers[each].add(remote)
                peers[remote].add(each)
    return {each: tuple(sorted(others)) for each, others in peers.items()}


def _mig_capable(gpu: Gpu, reasons: Mapping[str, Availability]) -> bool | None:
    if gpu.mig_mode is not None and gpu.mig_mode.current is not None:
        return True
    reason = reasons.get("migMode", reasons.get("migMode.current"))
    return False if reason is Availability.UNSUPPORTED else None


def _domain(fabric: Fabric | None) -> tuple[str | None, str | None]:
    """Return cluster and clique; an all-zero cluster is no multi-node domain, and a clique counts only inside one."""
    cluster = known_text(fabric.cluster_uuid) if fabric is not None else None
    if fabric is None or cluster is None or set(cluster) <= {"0", "-"}:
        return None, None
    return cluster, None if fabric.clique_id is None else str(fabric.clique_id)


def _fabric_attributes(fabric: Fabric | None) -> dict[str, JsonValue]:
    if fabric is None:
        return {}
    known = facts(fabric, _FABRIC_ATTRIBUTES)
    issues = {"fabricHealthIssues": list(fabric.health_issues)} if fabric.health_issues else {}
    return {**{_FABRIC_ATTRIBUTES[name]: str(value) for name, value in known.items()}, **issues}
