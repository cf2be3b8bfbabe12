"""What goes wrong with made-up machines: what the kernel log says of it, and what ends it.

The lines are worded as the driver words them (NVIDIA/open-gpu-kernel-modules, and logs in public issues); what a
trouble does to a node's sections and status is in `gpus.py` and `status.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.simulator.models import Server


class Trouble(StrEnum):
    """What can be wrong, in the words that a person is told."""

    DOUBLE_BIT_ERROR = "Xid 48 (double bit error)"
    FALLEN_OFF = "Xid 79 (GPU fallen off the bus)"
    UNCONTAINED = "Xid 95 (uncontained memory error)"
    REMAP_PENDING = "Xid 63 (row remap pending)"
    REMAP_FAILED = "Xid 64 (row remap failed)"
    CONTAINED = "Xid 94 (contained memory error) with 43 and 45"
    PROGRAM_FAULT = "Xids 13 and 31 of a program"
    GSP_TIMEOUT = "Xid 119 (GSP timeout)"
    NVLINK = "Xid 74 (NVLink inactive)"
    NVLINK5 = "Xid 149 (NVLink 5 link down)"
    RESET_REQUIRED = "Xid 154 (GPU reset required)"
    SWITCH = "an SXid"
    VOLATILE_ECC = "volatile ECC errors"
    FABRIC_FAILED = "fabric registration failed"
    OLD_DRIVER = "driver of an old branch"
    CPU_PRESSURE = "CPU pressure"
    MEMORY_PRESSURE = "memory pressure"
    DISK_PRESSURE = "I/O pressure"
    STEAL = "CPU steal"
    REBOOT_REQUIRED = "RebootRequired"
    FABRIC_MANAGER_DOWN = "FabricManagerDown"
    CLOCK_SKEW = "clock skew"
    SILENCE = "silence"


class Ending(StrEnum):
    """What ends a trouble."""

    AT_ONCE = "at once"
    """Only the kernel log has it."""
    BY_ITSELF = "by itself"
    RESET = "GPU reset"
    REBOOT = "reboot"
    NEW_CARD = "new card"


class Part(StrEnum):
    """What a trouble is about."""

    NODE = "node"
    GPU = "GPU"
    GPU_NODE = "node with GPUs"
    NVLINK_GPU = "GPU with NVLinks"
    NVLINK5_GPU = "GPU with NVLinks of the fifth generation"
    SWITCHED_NODE = "node with NVSwitches"


PARTS_OF_GPU: Final = frozenset({Part.GPU, Part.NVLINK_GPU, Part.NVLINK5_GPU})


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a trouble goes: the messages of the kernel log when it begins and when it ends by itself."""

    part: Part
    ending: Ending
    lines: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()


_XID: Final = "NVRM: Xid (PCI:{pci}): "
_NOBODY: Final = "pid='<unknown>', name=<unknown>, "
_PROGRAM: Final = "pid={pid}, name=python3, "

COURSES: Final[Mapping[Trouble, Course]] = {
    Trouble.DOUBLE_BIT_ERROR: Course(
        part=Part.GPU,
        ending=Ending.RESET,
        lines=(
            (
                f"{_XID}48, {_NOBODY}An uncorrectable double bit error (DBE) has been detected on GPU in the "
                "framebuffer at partition 3, subpartition 1."
            ),
        ),
    ),
    Trouble.FALLEN_OFF: Course(
        part=Part.GPU, ending=Ending.REBOOT, lines=(f"{_XID}79, {_NOBODY}GPU has fallen off the bus.",)
    ),
    Trouble.UNCONTAINED: Course(
        part=Part.GPU,
        ending=Ending.REBOOT,
        lines=(f"{_XID}95, {_PROGRAM}Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",),
    ),
    Trouble.REMAP_PENDING: Course(
        part=Part.GPU,
        ending=Ending.RESET,
        lines=(
            (
                f"{_XID}63, {_NOBODY}Row Remapper: New row (0x0000000000a1f3c0) marked for remapping, reset gpu to "
                "activate."
            ),
        ),
    ),
    Trouble.REMAP_FAILED: Course(
        part=Part.GPU,
        ending=Ending.NEW_CARD,
        lines=(f"{_XID}64, {_NOBODY}Row Remapper: Failed to remap row (0x0000000000a1f3c0), no spare row is left",),
    ),
    Trouble.CONTAINED: Course(
        part=Part.GPU,
        ending=Ending.AT_ONCE,
        lines=(
            f"{_XID}94, {_PROGRAM}Contained: SM (0x1). RST: No, D-RST: No",
            f"{_XID}43, {_PROGRAM}Ch 00000010",
            f"{_XID}45, {_PROGRAM}Ch 00000011",
        ),
    ),
    Trouble.PROGRAM_FAULT: Course(
        part=Part.GPU,
        ending=Ending.AT_ONCE,
        lines=(
            f"{_XID}13, {_PROGRAM}Graphics SM Warp Exception on (GPC 1, TPC 2, SM 0): Out Of Range Address",
            (
                f"{_XID}31, {_PROGRAM}Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
                "0x7f4c_2a000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
            ),
        ),
    ),
    Trouble.GSP_TIMEOUT: Course(
        part=Part.GPU,
        ending=Ending.RESET,
        lines=(
            (
                f"{_XID}119, {_PROGRAM}Timeout after 6s of waiting for RPC response from GPU{{slot}} GSP! Expected "
                "function 76 (GSP_RM_CONTROL) (0x20800a4c 0x4)."
            ),
        ),
    ),
    Trouble.NVLINK: Course(
        part=Part.NVLINK_GPU,
        ending=Ending.RESET,
        lines=(f"{_XID}74, {_NOBODY}NVLink: fatal error detected on link 4(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",),
    ),
    Trouble.NVLINK5: Course(
        part=Part.NVLINK5_GPU,
        ending=Ending.RESET,
        lines=(
            (
                f"{_XID}149, {_NOBODY}NETIR_LINK_DOWN Fatal XC1 i0 Link 04 "
                "({interrupt} 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
            ),
        ),
    ),
    Trouble.RESET_REQUIRED: Course(
        part=Part.GPU,
        ending=Ending.BY_ITSELF,
        lines=(f"{_XID}154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",),
        last_lines=(f"{_XID}154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",),
    ),
    Trouble.SWITCH: Course(
        part=Part.SWITCHED_NODE,
        ending=Ending.AT_ONCE,
        lines=("nvidia-nvswitch0: SXid (PCI:{switch}): 20034, Fatal, Link 30 LTSSM Fault Up",),
    ),
    Trouble.VOLATILE_ECC: Course(part=Part.GPU, ending=Ending.RESET),
    Trouble.FABRIC_FAILED: Course(part=Part.NVLINK_GPU, ending=Ending.BY_ITSELF),
    Trouble.OLD_DRIVER: Course(part=Part.GPU_NODE, ending=Ending.BY_ITSELF),
    Trouble.CPU_PRESSURE: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
    Trouble.MEMORY_PRESSURE: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
    Trouble.DISK_PRESSURE: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
    Trouble.STEAL: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
    Trouble.REBOOT_REQUIRED: Course(part=Part.NODE, ending=Ending.REBOOT),
    Trouble.FABRIC_MANAGER_DOWN: Course(part=Part.SWITCHED_NODE, ending=Ending.BY_ITSELF),
    Trouble.CLOCK_SKEW: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
    Trouble.SILENCE: Course(part=Part.NODE, ending=Ending.BY_ITSELF),
}
_FIFTH_GENERATION: Final = "Blackwell"
# The register of the interrupt got another layout with branch 575; both say a link without its signal.
_INTERRUPT_BEFORE_575, _INTERRUPT = "0x002001c6", "0x00200011"


def slots_of(server: Server, trouble: Trouble) -> int:
    """Return how many parts of such a machine a trouble can be about; 1 for the machine as a whole, 0 for none."""
    gpu, gpus = server.gpu, len(server.gpu_places)
    linked = gpu is not None and gpu.nvlinks > 0
    sizes = {
        Part.NODE: 1,
        Part.GPU: gpus,
        Part.GPU_NODE: min(gpus, 1),
        Part.NVLINK_GPU: gpus if linked else 0,
        Part.NVLINK5_GPU: gpus if linked and gpu is not None and gpu.architecture == _FIFTH_GENERATION else 0,
        Part.SWITCHED_NODE: 1 if gpu is not None and gpu.switches else 0,
    }
    return sizes[COURSES[trouble].part]


def messages(lines: tuple[str, ...], server: Server, slot: int, driver: str) -> tuple[str, ...]:
    """Return the kernel log's messages about a part of a machine with a driver of that version."""
    places, gpu = server.gpu_places, server.gpu
    facts = {
        "pci": _printed(places[slot].pci_bus_id) if places else "",
        "slot": slot,
        "pid": 4242 + slot,
        "switch": gpu.switches[0][4:].lower() if gpu and gpu.switches else "",
        "interrupt": _INTERRUPT_BEFORE_575 if driver < "575" else _INTERRUPT,
    }
    return tuple(line.format_map(facts) for line in lines)


def _printed(pci_bus_id: str) -> str:
    """Return the address as the driver prints it: four digits of domain and no function."""
    return pci_bus_id.removesuffix(".0")[4:].lower()
