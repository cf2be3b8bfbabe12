"""The machines of the made-up fleet, as small tables.

Names, sizes and places are those of public product documents and of `nvidia-smi` on such machines; every identity is
made up elsewhere.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class MigSlice:
    """One instance of a MIG layout."""

    gi: int
    profile: str
    memory_mib: int


@dataclass(frozen=True, slots=True)
class GpuPart:
    """A GPU as its driver describes it."""

    name: str
    architecture: str
    compute_capability: str
    vram_mib: int
    part_number: str
    vbios: str
    nvlinks: int = 0
    switches: tuple[str, ...] = ()
    mig_layouts: tuple[tuple[MigSlice, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a device sits."""

    pci_bus_id: str
    numa_node: int


class Adapter(StrEnum):
    """Kinds of network adapters."""

    INFINIBAND_400 = "ConnectX-7 InfiniBand"
    ETHERNET_100 = "ConnectX-6 Dx Ethernet"
    ETHERNET_10 = "X710 Ethernet"


@dataclass(frozen=True, slots=True)
class NicSlot:
    """A network adapter."""

    name: str
    adapter: Adapter
    place: Place


@dataclass(frozen=True, slots=True)
class DiskSlot:
    """An NVMe disk."""

    model: str
    size_bytes: int
    place: Place


@dataclass(frozen=True, slots=True)
class Server:
    """One kind of machine. `bios` lists versions with their dates, oldest first."""

    key: str
    vendor: str
    product: str
    board: str
    bios_vendor: str
    bios: tuple[tuple[str, str], ...]
    bmc: str
    cpu_vendor: str
    cpu_model: str
    cores_per_socket: int
    dimms: int
    dimm_gib: int
    dimm_part: str
    dimm_speed: int
    gpu: GpuPart | None
    gpu_places: tuple[Place, ...]
    nics: tuple[NicSlot, ...]
    disks: tuple[DiskSlot, ...]


DRIVERS: Final = (
    ("570.172.08", "12.8"),
    ("575.57.08", "12.9"),
    ("580.65.06", "13.0"),
    ("580.95.05", "13.0"),
    ("580.105.08", "13.0"),
)
OLD_DRIVER: Final = ("535.230.02", "12.2")
"""Of a branch that no node of the fleet is to have."""
KERNELS: Final = ("6.8.0-60-generic", "6.8.0-64-generic", "6.8.0-71-generic", "6.8.0-79-generic", "6.8.0-87-generic")


def _places(buses: str, sockets: int = 2) -> tuple[Place, ...]:
    found = buses.split()
    half = -(-len(found) // sockets)
    return tuple(Place(f"00000000:{bus}:00.0", place // half) for place, bus in enumerate(found))


def _sliced(first: int, count: int, profile: str, memory_mib: int) -> tuple[MigSlice, ...]:
    return tuple(MigSlice(first + place, profile, memory_mib) for place in range(count))


def _layouts(one: tuple[str, int], two: tuple[str, int], three: tuple[str, int]) -> tuple[tuple[MigSlice, ...], ...]:
    return (
        (),
        _sliced(1, 2, *three),
        (MigSlice(2, *three), MigSlice(3, *two), *_sliced(9, 2, *one)),
        _sliced(7, 7, *one),
    )


_HGX_SWITCHES: Final = tuple(f"00000000:{bus}:00.0" for bus in ("07", "08", "09", "0A"))
_H100: Final = GpuPart(
    name="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    compute_capability="9.0",
    vram_mib=81559,
    part_number="2330-885-A1",
    vbios="96.00.BC.00.01",
    nvlinks=18,
    switches=_HGX_SWITCHES,
    mig_layouts=_layouts(("1g.10gb", 9984), ("2g.20gb", 20096), ("3g.40gb", 40448)),
)
_H200: Final = GpuPart(
    name="NVIDIA H200",
    architecture="Hopper",
    compute_capability="9.0",
    vram_mib=143771,
    part_number="2335-885-A1",
    vbios="96.00.CF.00.01",
    nvlinks=18,
    switches=_HGX_SWITCHES,
    mig_layouts=_layouts(("1g.18gb", 16384), ("2g.35gb", 33280), ("3g.71gb", 71424)),
)
_B200: Final = GpuPart(
    name="NVIDIA B200",
    architecture="Blackwell",
    compute_capability="10.0",
    vram_mib=183359,
    part_number="2901-886-A1",
    vbios="97.00.B9.00.76",
    nvlinks=18,
    mig_layouts=_layouts(("1g.23gb", 22784), ("2g.45gb", 45696), ("3g.90gb", 91648)),
)
_L40S: Final = GpuPart(
    name="NVIDIA L40S",
    architecture="Ada Lovelace",
    compute_capability="8.9",
    vram_mib=46068,
    part_number="26B9-896-A1",
    vbios="95.02.66.00.02",
)

_RAILS: Final = "18 40 4F 5E 9A C0 CE DC"
_BOOT_DISK: Final = ("SAMSUNG MZ1L2960HCJR-00A07", 960_197_124_096)
_DATA_DISK: Final = ("SAMSUNG MZWLO3T8HCLS-00A07", 3_840_755_982_336)
_LARGE_DISK: Final = ("Micron_7450_MTFDKCC7T6TFR", 7_681_501_126_656)


def _rails() -> tuple[NicSlot, ...]:
    return tuple(
        NicSlot(f"ibp{int(place.pci_bus_id[9:11], 16)}s0", Adapter.INFINIBAND_400, place) for place in _places(_RAILS)
    )


def _management() -> tuple[NicSlot, ...]:
    return (
        NicSlot("eno1", Adapter.ETHERNET_10, Place("00000000:33:00.0", 0)),
        NicSlot("eno2", Adapter.ETHERNET_10, Place("00000000:33:00.1", 0)),
    )


def _storage() -> tuple[NicSlot, ...]:
    return (
        NicSlot("ens1f0np0", Adapter.ETHERNET_100, Place("00000000:A9:00.0", 1)),
        NicSlot("ens1f1np1", Adapter.ETHERNET_100, Place("00000000:A9:00.1", 1)),
    )


def _disks(boot: int, data: int, kind: tuple[str, int]) -> tuple[DiskSlot, ...]:
    places = _places("05 06 2B 2C 2D 2E AC AD AE AF")
    return tuple(DiskSlot(*(_BOOT_DISK if place < boot else kind), places[place]) for place in range(boot + data))


_H100_SERVER: Final = Server(
    key="h100",
    vendor="Dell Inc.",
    product="PowerEdge XE9680",
    board="06HGX0",
    bios_vendor="Dell Inc.",
    bios=(("2.3.6", "11/12/2024"), ("2.4.4", "02/06/2025"), ("2.5.4", "04/14/2025"), ("2.6.3", "07/01/2025")),
    bmc="7.20.30.00",
    cpu_vendor="GenuineIntel",
    cpu_model="Intel(R) Xeon(R) Platinum 8480+",
    cores_per_socket=56,
    dimms=32,
    dimm_gib=64,
    dimm_part="M321R8GA0BB0-CQKZJ",
    dimm_speed=4800,
    gpu=_H100,
    gpu_places=_places("19 3B 4C 5D 9B BB CB DB"),
    nics=(*_management(), *_storage(), *_rails()),
    disks=_disks(2, 8, _DATA_DISK),
)
_H200_SERVER: Final = Server(
    key="h200",
    vendor="Supermicro",
    product="AS -8125GS-TNHR",
    board="H13DSG-O-CPU",
    bios_vendor="American Megatrends International, LLC.",
    bios=(("1.9", "06/14/2024"), ("3.0", "11/22/2024"), ("3.2", "03/19/2025"), ("3.4", "07/08/2025")),
    bmc="01.03.18",
    cpu_vendor="AuthenticAMD",
    cpu_model="AMD EPYC 9654 96-Core Processor",
    cores_per_socket=96,
    dimms=24,
    dimm_gib=96,
    dimm_part="MTC40F204WS1RC48BB1",
    dimm_speed=4800,
    gpu=_H200,
    gpu_places=_places("04 23 43 64 84 A3 C3 E4"),
    nics=(*_management(), *_storage(), *_rails()),
    disks=_disks(2, 8, _LARGE_DISK),
)
_B200_SERVER: Final = Server(
    key="b200",
    vendor="NVIDIA",
    product="DGX B200",
    board="DGX B200",
    bios_vendor="American Megatrends International, LLC.",
    bios=(("1.4.2", "12/17/2024"), ("1.5.6", "03/27/2025"), ("1.6.7", "06/25/2025")),
    bmc="25.06.27",
    cpu_vendor="GenuineIntel",
    cpu_model="INTEL(R) XEON(R) PLATINUM 8570",
    cores_per_socket=56,
    dimms=32,
    dimm_gib=64,
    dimm_part="HMCG94AGBRA181N",
    dimm_speed=5600,
    gpu=_B200,
    gpu_places=_places("1B 43 52 61 9D C3 D1 DF"),
    nics=(*_management(), *_storage(), *_rails()),
    disks=_disks(2, 8, _DATA_DISK),
)


def _l40s(count: int) -> Server:
    return Server(
        key=f"l40s-{count}",
        vendor="Supermicro",
        product="AS -4125GS-TNRT",
        board="H13DSG-O-CPU-D",
        bios_vendor="American Megatrends International, LLC.",
        bios=(("1.5", "10/05/2023"), ("1.8", "05/21/2024"), ("3.1", "12/18/2024"), ("3.5", "08/14/2025")),
        bmc="01.02.41",
        cpu_vendor="AuthenticAMD",
        cpu_model="AMD EPYC 9354 32-Core Processor",
        cores_per_socket=32,
        dimms=24,
        dimm_gib=32,
        dimm_part="HMCG88AGBRA191N",
        dimm_speed=4800,
        gpu=_L40S,
        gpu_places=_places("01 25 41 61 81 A1 C1 E1"[: 3 * count]),
        nics=(*_management(), *_storage()),
        disks=_disks(2, 2, _DATA_DISK),
    )


_CPU_SERVER: Final = Server(
    key="cpu",
    vendor="HPE",
    product="ProLiant DL365 Gen11",
    board="ProLiant DL365 Gen11",
    bios_vendor="HPE",
    bios=(("1.58", "01/04/2024"), ("2.10", "10/16/2024"), ("2.44", "05/30/2025")),
    bmc="1.66",
    cpu_vendor="AuthenticAMD",
    cpu_model="AMD EPYC 9354 32-Core Processor",
    cores_per_socket=32,
    dimms=16,
    dimm_gib=32,
    dimm_part="HMCG88AGBRA191N",
    dimm_speed=4800,
    gpu=None,
    gpu_places=(),
    nics=(*_management(), *_storage()),
    disks=_disks(2, 2, _LARGE_DISK),
)
_L40S_4: Final = _l40s(4)
_L40S_8: Final = _l40s(8)

# Twenty machines of a fleet; the first five are one of each kind, so that a small fleet shows them all.
_MIX: Final = (
    *(_H100_SERVER, _H200_SERVER, _B200_SERVER, _L40S_8, _CPU_SERVER),
    *(_H100_SERVER, _H100_SERVER, _L40S_4, _H200_SERVER, _H100_SERVER),
    *(_H100_SERVER, _B200_SERVER, _H100_SERVER, _L40S_8, _H200_SERVER),
    *(_H100_SERVER, _L40S_4, _CPU_SERVER, _H100_SERVER, _H200_SERVER),
)


def server_of(node: int) -> Server:
    """Return the kind of machine that a node of the fleet is; it does not depend on the fleet's size."""
    return _MIX[node % len(_MIX)]
