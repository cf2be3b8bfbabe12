"""All eight sections of a made-up node."""

from typing import Final

from agent.simulator.gpus import gpus_section
from agent.simulator.material import Material
from agent.simulator.models import GIB, KERNELS, Adapter, NicSlot, Server
from agent.simulator.node import NodeState, generation
from domain.documents.cpu import CpuSection, NumaCpus
from domain.documents.disks import Disk, DisksSection, Filesystem
from domain.documents.document import Section
from domain.documents.images import Image, ImagesSection
from domain.documents.memory import Dimm, HugePages, MemorySection, NumaMemory
from domain.documents.nics import Nic, NicsSection, Rdma, RdmaPort
from domain.documents.os import Distro, OsSection, Software
from domain.documents.system import SystemSection

_SOCKETS: Final = 2
_KERNEL_KEEPS: Final = 0.985
"""Share of the memory that is left after what the firmware and the kernel take."""
_FLAG_LIST: Final = (
    "abm adx aes apic avx avx2 avx512_bf16 avx512_bitalg avx512_vbmi2 avx512_vnni avx512_vpopcntdq avx512bw avx512cd "
    "avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi1 bmi2 clflush clflushopt clwb cmov constant_tsc cpuid cx16 "
    "cx8 erms f16c fma fpu fsgsbase fsrm fxsr gfni ht invpcid lahf_lm lm mmx monitor movbe msr mtrr nonstop_tsc nopl "
    "nx ospke pae pat pcid pclmulqdq pdpe1gb pku pni popcnt rdpid rdrand rdseed rdtscp sha_ni smap smep sse sse2 "
    "sse4_1 sse4_2 ssse3 syscall tsc umip vaes vpclmulqdq wbnoinvd x2apic xgetbv1 xsave xsavec xsaveopt xsaves"
)
_FLAGS: Final = tuple(sorted(_FLAG_LIST.split()))
_FIRMWARE: Final = {
    Adapter.INFINIBAND_400: "28.43.2026 (MT_0000000838)",
    Adapter.ETHERNET_100: "22.43.2026 (MT_0000000359)",
    Adapter.ETHERNET_10: "9.50 0x8000f2ae 1.3682.0",
}
_RATES: Final = {Adapter.INFINIBAND_400: 400, Adapter.ETHERNET_100: 100, Adapter.ETHERNET_10: 10}
_IMAGES: Final = (
    ("pytorch:2.8", 9_240_000_000),
    ("triton-server:25.06", 14_880_000_000),
    ("node-exporter:1.9", 24_100_000),
)


def sections_of(material: Material, state: NodeState) -> dict[str, Section]:
    """Return what the node's agent would collect; the same seed and state give the same sections."""
    server = state.server
    return {
        "system": _system(material, state, server),
        "cpu": _cpu(server),
        "memory": _memory(material, state, server),
        "gpus": gpus_section(material, state),
        "nics": NicsSection(nics=tuple(_nic(material, state, slot, nic) for slot, nic in enumerate(server.nics))),
        "disks": _disks(material, state, server),
        "os": _os(state, server),
        "images": _images(material),
    }


def _system(material: Material, state: NodeState, server: Server) -> SystemSection:
    version, date = server.bios[state.bios]
    return SystemSection(
        product_uuid=material.uuid("product"),
        system_serial=material.serial("system", 7),
        board_serial=material.serial("board", 14),
        chassis_serial=material.serial("chassis", 7),
        vendor=server.vendor,
        product=server.product,
        board=server.board,
        bios_vendor=server.bios_vendor,
        bios_version=version,
        bios_date=date,
        bmc_version=server.bmc,
        virtualization="none",
    )


def _cpu(server: Server) -> CpuSection:
    cores = server.cores_per_socket
    total = cores * _SOCKETS
    return CpuSection(
        arch="x86_64",
        vendor=server.cpu_vendor,
        model=server.cpu_model,
        sockets=_SOCKETS,
        cores=total,
        threads=2 * total,
        numa_nodes=tuple(
            NumaCpus(id=socket, cpus=f"{first}-{first + cores - 1},{first + total}-{first + total + cores - 1}")
            for socket in range(_SOCKETS)
            for first in (socket * cores,)
        ),
        flags=_FLAGS,
    )


def _memory(material: Material, state: NodeState, server: Server) -> MemorySection:
    slots = [slot for slot in range(server.dimms) if slot not in state.lost_dimms]
    per_node = [
        int(sum(slot % _SOCKETS == node for slot in slots) * server.dimm_gib * GIB * _KERNEL_KEEPS) // 4096 * 4096
        for node in range(_SOCKETS)
    ]
    return MemorySection(
        total_bytes=sum(per_node),
        numa_nodes=tuple(NumaMemory(id=node, total_bytes=total) for node, total in enumerate(per_node)),
        huge_pages=(HugePages(size_kib=2048, count=0), HugePages(size_kib=1048576, count=0)),
        swap_bytes=0,
        dimms=tuple(
            Dimm(
                locator=f"{'AB'[slot % _SOCKETS]}{slot // _SOCKETS + 1}",
                size_bytes=server.dimm_gib * GIB,
                type="DDR5",
                speed_mts=server.dimm_speed,
                part_number=server.dimm_part,
                serial=material.hexadecimal(f"dimm {slot}", 4).upper(),
            )
            for slot in slots
        ),
    )


def _nic(material: Material, state: NodeState, slot: int, nic: NicSlot) -> Nic:
    times = generation(state.nics, slot)
    mac = material.mac(slot, times, intel=nic.adapter is Adapter.ETHERNET_10)
    infiniband = nic.adapter is Adapter.INFINIBAND_400
    octets = mac.split(":")
    guid = ":".join((*octets[:3], "03", "00", *octets[3:]))
    address = guid if infiniband else mac
    ethernet_guid = ":".join((f"{int(octets[0], 16) ^ 2:02x}", *octets[1:3], "ff", "fe", *octets[3:]))
    rdma = None
    if nic.adapter is not Adapter.ETHERNET_10:
        port = RdmaPort(
            port=1,
            guid=_guid(guid if infiniband else ethernet_guid),
            link_layer="InfiniBand" if infiniband else "Ethernet",
            rate_gbps=_RATES[nic.adapter],
        )
        rdma = Rdma(device=f"mlx5_{slot - 2}", node_guid=_guid(guid), ports=(port,))
    return Nic(
        name=nic.name,
        mac=address,
        permanent_mac=address,
        driver="i40e" if nic.adapter is Adapter.ETHERNET_10 else "mlx5_core",
        firmware=_FIRMWARE[nic.adapter],
        pci_bus_id=nic.place.pci_bus_id,
        numa_node=nic.place.numa_node,
        removable=False,
        rdma=rdma,
    )


def _guid(octets: str) -> str:
    return "0x" + octets.replace(":", "")


def _disks(material: Material, state: NodeState, server: Server) -> DisksSection:
    disks = []
    for slot, disk in enumerate(server.disks):
        what = f"disk {slot} {generation(state.disks, slot)}"
        disks.append(
            Disk(
                name=f"nvme{slot}n1",
                wwn=f"eui.{material.hexadecimal(what, 16)}",
                serial=f"S{material.serial(f'{what} serial', 13)}",
                namespace=1,
                model=disk.model,
                size_bytes=disk.size_bytes,
                rotational=False,
                transport="nvme",
                pci_bus_id=disk.place.pci_bus_id,
            )
        )
    data = sum(disk.size_bytes for disk in server.disks[2:])
    return DisksSection(
        disks=tuple(disks),
        filesystems=(
            Filesystem(mount="/", type="ext4", total_bytes=server.disks[0].size_bytes * 98 // 100, shared=False),
            Filesystem(mount="/scratch", type="xfs", total_bytes=data * 99 // 100, shared=False),
        ),
    )


def _os(state: NodeState, server: Server) -> OsSection:
    driver, _ = state.versions
    switched = server.gpu is not None and server.gpu.nvlinks > 0
    return OsSection(
        distro=Distro(id="ubuntu", version="24.04", pretty_name="Ubuntu 24.04.3 LTS"),
        kernel=KERNELS[state.kernel],
        arch="x86_64",
        kvm_available=True,
        container_runtimes=(Software(name="containerd", version="1.7.27"),),
        fabric_manager=Software(name="nvidia-fabricmanager", version=driver) if switched else None,
    )


def _images(material: Material) -> ImagesSection:
    # Images are the same on all nodes, as the digest of the same image is.
    fleet = Material(material.seed, 0)
    return ImagesSection(
        images=tuple(
            Image(reference=name, digest=f"sha256:{fleet.hexadecimal(name, 32)}", size_bytes=size)
            for name, size in sorted(_IMAGES)
        )
    )
