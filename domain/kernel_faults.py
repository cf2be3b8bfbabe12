"""What the NVIDIA driver says in a message of the kernel: faults, and what stands beside them.

Shapes: NVIDIA/open-gpu-kernel-modules 595.45.04 (kernel_rc.c, gpu.c, osinit.c, common_nvswitch.h) and logs in public
issues. Any text is read in linear time, and none is refused.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from domain.pci import canonical

LINES_MAX: Final = 64
"""Lines of one message that are read."""
FALLEN_OFF_CODE: Final = 79
RECOVERY_CODE: Final = 154
NVLINK5_CODES: Final = range(144, 151)
_WHOLE_GPU: Final = 0xFFFFFFFF
_BUS_MAX: Final = 0xFF
_NAME_LENGTH_MAX: Final = 64

_ADDRESS: Final = r"(?P<address>[0-9a-fA-F]{1,8}(?::[0-9a-fA-F]{1,4}){1,2}(?:\.[0-9a-fA-F]{1,2})?)"
_WHOLE_ADDRESS: Final = re.compile(_ADDRESS, re.ASCII)
_INSTANCE: Final = r"(?:\s{1,4}GPU-I:(?P<gi>\d{1,10}))?(?:\s{1,4}GPU-CI:(?P<ci>\d{1,10}))?"
_XID: Final = re.compile(
    rf"(?:NVRM:\s{{0,8}}Xid\s{{1,8}}\((?:PCI:)?|Xid\s{{1,8}}\(PCI:){_ADDRESS}{_INSTANCE}\):\s{{0,8}}(?P<code>\d{{1,5}})(?!\w)",
    re.ASCII,
)
_SXID: Final = re.compile(
    rf"(?:nvidia-nvswitch(?P<switch>\d{{1,4}}):\s{{0,8}})?SXid\s{{1,8}}\(PCI:{_ADDRESS}\):\s{{0,8}}(?P<code>\d{{1,6}})(?!\w)",
    re.ASCII,
)
# A lost newline glues lines together.
_GLUED: Final = re.compile(
    r"(?=NVRM:\s{0,8}Xid\s{1,8}\([^()]{1,80}\):\s{0,8}\d|nvidia-nvswitch\d{1,4}:\s{0,8}SXid\s{1,8}\([^()]{1,80}\):\s{0,8}\d)",
    re.ASCII,
)
_PREVIOUS: Final = re.compile(r"caused by previous Xid (\d{1,5})(?!\w)", re.ASCII)
_LINK: Final = re.compile(r"\blink (\d{1,3})(?!\w)", re.ASCII | re.IGNORECASE)
_RECOVERY: Final = re.compile(r"changed from 0x([0-9a-f]{1,8}) \([^()]{0,64}\) to 0x([0-9a-f]{1,8}) \(", re.IGNORECASE)
# Each part may be missing: the kernel's ring buffer cuts lines anywhere.
_NVLINK5: Final = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_/]{1,63})(?: (?P<severity>Fatal|Non-?fatal)(?: XC(?P<xc>\d)(?: i(?P<injected>\d)"
    r"(?: Link (?P<link>-?\d{1,3})(?: \((?P<words>[0-9a-fx ]{0,200})(?P<whole>\))?)?)?)?)?)?(?![^ ])",
    re.ASCII | re.IGNORECASE,
)
_WORD: Final = re.compile(r"0x([0-9a-f]{8})(?!\w)", re.ASCII | re.IGNORECASE)

_GPU_NAMED: Final = re.compile(rf"NVRM: GPU at (?:PCI:)?{_ADDRESS}: (?P<uuid>GPU-[0-9a-f-]{{8,40}})", re.IGNORECASE)
_BOARD_SERIAL: Final = re.compile(r"NVRM: GPU Board Serial Number: (?P<serial>\w{1,32})", re.ASCII)
_GPU_FELL: Final = re.compile(rf"NVRM: GPU (?:at )?(?:PCI:)?{_ADDRESS}: GPU has fallen off the bus", re.ASCII)
_LOST_NAMED: Final = re.compile(rf"NVRM: The NVIDIA GPU {_ADDRESS}", re.ASCII)
_LOST: Final = "fallen off the bus and is not responding"
_RATE_LIMITED: Final = re.compile(rf"NVRM: Rate limiting GSP RPC error prints for GPU at (?:PCI:)?{_ADDRESS}", re.ASCII)
_LOADED: Final = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,40}Kernel Module.{0,40}?\s(?P<version>\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)(?!\S)",
    re.ASCII,
)
_BOOTED: Final = re.compile(r"Linux version \d{1,3}\.\d", re.ASCII)
# Anchored: what a device or a file calls itself is printed by the kernel as well, further on in its line. What a
# process calls itself may stand first: each pattern needs more than its 15 characters.
_DRIVER: Final = ("NVRM:", "nvidia-nvswitch", "Xid (PCI:", "SXid (PCI:", "Linux version ")
_SXID_CONTINUES: Final = ("Severity ", "Data {", "SOE HALT data")


class FaultKind(StrEnum):
    """Which of the driver's lines told of it."""

    XID = "xid"
    SXID = "sxid"
    FALLEN_OFF = "fallen_off"
    """A GPU that fell off the bus, told without an Xid."""


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A GPU instance, or a compute instance of one."""

    gi: int
    ci: int | None = None

    def __str__(self) -> str:
        return f"gi{self.gi}" if self.ci is None else f"gi{self.gi}/ci{self.ci}"


@dataclass(frozen=True, slots=True)
class NvlinkError:
    """What an Xid 144 to 150 says; what a cut line does not tell is None. `words` are the registers in its brackets."""

    unit: str | None = None
    is_fatal: bool | None = None
    xc: int | None = None
    is_injected: bool = False
    words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault as one line tells it.

    `address` is the PCI address as printed, empty where no line tells it; `pci` the canonical one, None where no device
    can have it. `caused_by` is the code of the Xid that this one follows, `recovery` the last value of Xid 154,
    `is_fatal` a switch's own word.
    """

    kind: FaultKind
    code: int
    address: str
    pci: str | None
    message: str
    pid: int | None = None
    process: str | None = None
    mig: MigInstance | None = None
    caused_by: int | None = None
    link: int | None = None
    recovery: int | None = None
    nvlink: NvlinkError | None = None
    switch: int | None = None
    is_fatal: bool | None = None

    @property
    def place(self) -> str:
        """Where it is: two addresses that cannot be read are two places."""
        return self.pci or self.address


@dataclass(frozen=True, slots=True)
class GpuNamed:
    """The driver names a GPU's UUID, before its first Xid."""

    place: str
    uuid: str


@dataclass(frozen=True, slots=True)
class BoardSerial:
    """The serial number of the board named right before."""

    serial: str


@dataclass(frozen=True, slots=True)
class LostNamed:
    """The first of three lines: which GPU they are about."""

    address: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The last of three lines: that GPU fell off the bus."""

    message: str


@dataclass(frozen=True, slots=True)
class RateLimited:
    """From here on the driver prints one of many errors of a GPU."""

    place: str


@dataclass(frozen=True, slots=True)
class DriverLoaded:
    """The driver tells its version."""

    version: str


@dataclass(frozen=True, slots=True)
class Booted:
    """The first line of a boot."""


Statement = Fault | GpuNamed | BoardSerial | LostNamed | Lost | RateLimited | DriverLoaded | Booted


def statements(message: str) -> Iterator[Statement]:
    """Yield what a message says, in its order; nothing for a message that is not the driver's."""
    if not message.startswith(_DRIVER):
        return
    for line in message.split("\n", LINES_MAX)[:LINES_MAX]:
        for piece in _GLUED.split(line.strip()):
            if piece.startswith(_DRIVER):
                yield from _said(piece)


def fallen_off(address: str, message: str) -> Fault:
    """Return the fault of a GPU that the driver says to have fallen off the bus, without an Xid."""
    pci = _canonical(address) if address else None
    return Fault(kind=FaultKind.FALLEN_OFF, code=FALLEN_OFF_CODE, address=address, pci=pci, message=message)


def _said(line: str) -> Iterator[Statement]:
    for pattern, made in _MADE:
        if found := pattern.match(line):
            yield made(found, line)
    if _LOST in line:
        yield Lost(line)


def _xid(found: re.Match[str], line: str) -> Fault:
    pid, process, message = _process(line[found.end() :].lstrip(", "))
    return with_details(
        Fault(
            kind=FaultKind.XID,
            code=int(found["code"]),
            address=found["address"],
            pci=_canonical(found["address"]),
            message=message,
            pid=pid,
            process=process,
            mig=_mig(found["gi"], found["ci"]),
        )
    )


def with_details(fault: Fault) -> Fault:
    """Read an Xid's message for what it says beside its words: causes, links, values and registers."""
    previous = _PREVIOUS.search(fault.message)
    link = _LINK.search(fault.message)
    fault = replace(
        fault,
        caused_by=int(previous[1]) if previous else fault.caused_by,
        link=int(link[1]) if link else None,
    )
    if fault.code == RECOVERY_CODE:
        recovery = _RECOVERY.search(fault.message)
        return replace(fault, recovery=int(recovery[2], 16) if recovery else None)
    return _nvlink5(fault) if fault.code in NVLINK5_CODES else fault


def address_of(text: str) -> str | None:
    """Return the canonical PCI address of what the driver printed; None when it is none. Raises nothing."""
    return _canonical(text) if _WHOLE_ADDRESS.fullmatch(text) else None


def _process(rest: str) -> tuple[int | None, str | None, str]:
    """Split off the process; a name ends at the first comma with a blank, as it may hold any other mark."""
    if not rest.startswith("pid="):
        return None, None, rest
    pid, _, after = rest.removeprefix("pid=").partition(",")
    name, _, message = after.strip().partition(", ")
    number = pid.strip("' ")
    known = number.isascii() and number.isdecimal() and len(number) <= 10  # noqa: PLR2004 - digits of 32 bits
    if not name.startswith("name="):
        return int(number) if known else None, None, after.strip()
    process = name.removeprefix("name=")[:_NAME_LENGTH_MAX]
    return int(number) if known else None, None if process in {"", "<unknown>"} else process, message.strip()


def _mig(gi: str | None, ci: str | None) -> MigInstance | None:
    if gi is None or int(gi) == _WHOLE_GPU:
        return None
    return MigInstance(int(gi), None if ci is None or int(ci) == _WHOLE_GPU else int(ci))


def _nvlink5(fault: Fault) -> Fault:
    found = _NVLINK5.match(" ".join(fault.message.split()))
    if found is None:
        return replace(fault, nvlink=NvlinkError())
    severity = (found["severity"] or "").casefold()
    error = NvlinkError(
        unit=found["unit"].upper(),
        is_fatal=severity == "fatal" if severity else None,
        xc=int(found["xc"]) if found["xc"] else None,
        is_injected=found["injected"] not in {None, "0"},
        words=tuple(int(word, 16) for word in _WORD.findall(found["words"] or "")),
    )
    return replace(fault, nvlink=error, link=int(found["link"]) if found["link"] else None)


def _sxid(found: re.Match[str], line: str) -> Fault:
    message = line[found.end() :].lstrip(", ")
    link = _LINK.search(message) if not message.startswith(_SXID_CONTINUES) else None
    return Fault(
        kind=FaultKind.SXID,
        code=int(found["code"]),
        address=found["address"],
        pci=_canonical(found["address"]),
        message=message,
        link=int(link[1]) if link else None,
        switch=int(found["switch"]) if found["switch"] else None,
        is_fatal=True if message.startswith("Fatal") else False if message.startswith("Non-fatal") else None,
    )


def _canonical(address: str) -> str | None:
    """Return the canonical address; the oldest drivers print a bus of four digits and no domain."""
    bus, _, device = address.partition(":")
    if ":" not in device and int(bus, 16) <= _BUS_MAX:
        return canonical(f"{int(bus, 16):02x}:{device}")
    return canonical(address)


def _place(found: re.Match[str]) -> str:
    return _canonical(found["address"]) or found["address"]


_MADE: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Statement]], ...]] = (
    (_XID, _xid),
    (_SXID, _sxid),
    (_GPU_FELL, lambda found, line: fallen_off(found["address"], line)),
    (_GPU_NAMED, lambda found, _: GpuNamed(_place(found), found["uuid"])),
    (_BOARD_SERIAL, lambda found, _: BoardSerial(found["serial"])),
    (_RATE_LIMITED, lambda found, _: RateLimited(_place(found))),
    (_LOADED, lambda found, _: DriverLoaded(found["version"])),
    (_BOOTED, lambda _, __: Booted()),
    (_LOST_NAMED, lambda found, _: LostNamed(found["address"])),
)
