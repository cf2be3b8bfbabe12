"""The driver's words: every shape of a fault's line, and what looks like one."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.kernel_faults import (
    BoardSerial,
    Booted,
    DriverLoaded,
    Fault,
    FaultKind,
    GpuNamed,
    Lost,
    LostNamed,
    MigInstance,
    NvlinkError,
    RateLimited,
    statements,
)

HERE = "0000:18:00"
PLACE = "00000000:18:00.0"


def xid(code: int, message: str = "", address: str = HERE, **facts: Any) -> Fault:  # noqa: ANN401
    return Fault(kind=FaultKind.XID, code=code, address=address, pci=facts.pop("pci", PLACE), message=message, **facts)


def only(message: str) -> Fault:
    (said,) = statements(message)
    assert isinstance(said, Fault)
    return said


FELL = "GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (f"NVRM: Xid (PCI:{HERE}): 79, pid=41, name=train, {FELL}", xid(79, FELL, pid=41, process="train")),
        (f"NVRM: Xid (PCI:{HERE}): 79, pid='<unknown>', name=<unknown>, {FELL}", xid(79, FELL)),
        (f"NVRM: Xid (PCI:{HERE}): 79, {FELL}", xid(79, FELL)),
        (f"NVRM: Xid (PCI:{HERE}): 46", xid(46)),
        (f"NVRM: Xid (PCI:{HERE}): 8, pid=41, name=x y", xid(8, pid=41, process="x y")),
        (f"NVRM: Xid (PCI:{HERE}): 8, pid=41", xid(8, pid=41)),
        (
            f"NVRM: Xid (PCI:{HERE}): 31, pid=41, name=ray::W [a.b]:c, MMU Fault",
            xid(31, "MMU Fault", pid=41, process="ray::W [a.b]:c"),
        ),
        (f"NVRM: Xid (PCI:{HERE} GPU-I:05): 13, bad", xid(13, "bad", mig=MigInstance(5))),
        (f"NVRM: Xid (PCI:{HERE} GPU-I:05 GPU-CI:00): 31, bad", xid(31, "bad", mig=MigInstance(5, 0))),
        (f"NVRM: Xid (PCI:{HERE} GPU-I:4294967295 GPU-CI:4294967295): 48, bad", xid(48, "bad")),
        ("NVRM: Xid (PCI:0018:01:00): 119, t", xid(119, "t", "0018:01:00", pci="00000018:01:00.0")),
        ("NVRM: Xid (PCI:00010018:01:00): 119, t", xid(119, "t", "00010018:01:00", pci="00010018:01:00.0")),
        ("NVRM: Xid (PCI:0000:00:08.0): 48, t", xid(48, "t", "0000:00:08.0", pci="00000000:00:08.0")),
        ("NVRM: Xid (0000:03:00): 14, Channel 1", xid(14, "Channel 1", "0000:03:00", pci="00000000:03:00.0")),
        ("NVRM: Xid (0001:00): 6, PE0000", xid(6, "PE0000", "0001:00", pci="00000000:01:00.0")),
        ("NVRM: Xid (PCI:0001:ab:cd): 69, Class", xid(69, "Class", "0001:ab:cd", pci=None)),
        (
            f"NVRM: Xid (PCI:{HERE}): 45, pid=41, name=x, Ch 00000010 caused by previous Xid 149",
            xid(45, "Ch 00000010 caused by previous Xid 149", pid=41, process="x", caused_by=149),
        ),
        (f"NVRM: Xid (PCI:{HERE}): 74, NVLink: fatal error detected on link 14(0x0)", None),
        (f"Xid (PCI:{HERE}): 79, {FELL}", xid(79, FELL)),  # the driver's trace event
        (f"NVRM: Xid (PCI:{HERE}): 154, GPU recovery action changed from 0x0 (None) to 0x1f (New)", None),
    ],
)
def test_every_shape_of_an_xid_is_read(line: str, fault: Fault | None) -> None:
    said = only(line)
    if fault is not None:
        assert said == fault
    else:
        assert (said.link, said.recovery) == ((14, None) if said.code == 74 else (None, 0x1F))


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid error: xyz, invalid data",
        "NVRM: Xid (invalid): some error",
        f"NVRM: Xid (PCI:{HERE}): abc",
        f"NVRM: Xid (PCI:{HERE}): 79x",
        f"NVRM: Xid (PCI:{HERE}): 123456",
        "NVRM: Xid : 32, pid=41",
        f"NVRM: Xid 154 (PCI:{HERE}), GPU recovery action",
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
        "NVRM: A GPU crash dump has been created.",
        # What devices and programs call themselves is printed by the kernel as well.
        f"usb 1-1: Product: NVRM: Xid (PCI:{HERE}): 79, {FELL}",
        "Xid (01:00): 79[4242]: segfault at 0 ip 0 sp 0",
        "Linux version x[4242]: segfault at 0",
        f"evil\nNVRM: Xid (PCI:{HERE}): 79, {FELL}",
    ],
)
def test_what_only_looks_like_a_fault_is_none(line: str) -> None:
    assert not [said for said in statements(line) if not isinstance(said, LostNamed)]


WORDS = "0x0409a0c2 0x00000008 0x00000001"


@pytest.mark.parametrize(
    ("body", "link", "error"),
    [
        (
            f"RLW_RXPIPE Nonfatal XC0 i0 Link 13 ({WORDS})",
            13,
            NvlinkError("RLW_RXPIPE", False, 0, False, (0x0409A0C2, 8, 1)),  # noqa: FBT003
        ),
        (
            f"pid=41, name=x, RLW_RXPIPE  Fatal   XC1 i1 Link -1 ({WORDS})",
            -1,
            NvlinkError("RLW_RXPIPE", True, 1, True, (0x0409A0C2, 8, 1)),  # noqa: FBT003
        ),
        ("NETIR Fatal XC0 i0 Link 08 (0x000fe406", 8, NvlinkError("NETIR", True, 0, False, (0x000FE406,))),  # noqa: FBT003
        ("NETIR Fatal XC0 i0 Link 08 (0x000fe4", 8, NvlinkError("NETIR", True, 0)),  # noqa: FBT003
        ("TLW_RX/TLW_RX_PIPE0 Nonfatal X", None, NvlinkError("TLW_RX/TLW_RX_PIPE0", False)),  # noqa: FBT003
        ("", None, NvlinkError()),
    ],
)
def test_an_nvlink5_error_is_read_as_far_as_its_line_goes(body: str, link: int | None, error: NvlinkError) -> None:
    said = only(f"NVRM: Xid (PCI:{HERE}): 145, {body}")
    assert (said.link, said.nvlink) == (link, error)


@pytest.mark.parametrize(
    ("rest", "link", "is_fatal"),
    [
        ("Non-fatal, Link 46 MC TS crumbstore", 46, False),
        ("Fatal, Link 30 LTSSM Fault Up", 30, True),
        ("Non-fatal, Li", None, False),
        ("Severity 0 Engine instance 46 link 3", None, None),
        ("Data {0x00000000, 0x00000000}", None, None),
        ("SOE HALT data[0] = 0x               0", None, None),
    ],
)
def test_a_switchs_line_is_the_switchs(rest: str, link: int | None, is_fatal: bool | None) -> None:  # noqa: FBT001
    said = only(f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, {rest}")
    assert (said.kind, said.code, said.switch, said.pci) == (FaultKind.SXID, 20034, 3, "00000000:C1:00.0")
    assert (said.link, said.is_fatal) == (link, is_fatal)


def test_lines_glued_by_a_lost_newline_are_two_faults() -> None:
    line = f"NVRM: Xid (PCI:{HERE}): 79, {FELL}NVRM: Xid (PCI:{HERE}): 45, pid=41, name=x, Ch 1"
    assert list(statements(line)) == [xid(79, FELL), xid(45, "Ch 1", pid=41, process="x")]


def test_a_process_that_calls_itself_a_fault_is_no_second_one() -> None:
    named = f"NVRM: Xid (PCI:{HERE}): 31, pid=41, name=NVRM: Xid (PCI:, MMU Fault"
    assert only(named) == xid(31, "MMU Fault", pid=41, process="NVRM: Xid (PCI:")


def test_what_stands_beside_faults_is_told() -> None:
    uuid = "GPU-0a1b2c3d-0000-4000-8000-00000000000a"
    message = "\n".join(
        [
            "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 02:00:00 UTC 2025",
            f"NVRM: GPU at PCI:{HERE}: {uuid}",
            "NVRM: GPU Board Serial Number: 1650000000001",
            f"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{HERE} (printing 1 of every 30).",
            "NVRM: GPU 18:00.0: GPU has fallen off the bus.",
        ]
    )
    *beside, fell = statements(message)
    assert beside == [
        DriverLoaded("570.86.15"),
        GpuNamed(PLACE, uuid),
        BoardSerial("1650000000001"),
        RateLimited(PLACE),
    ]
    assert isinstance(fell, Fault)
    assert (fell.kind, fell.code, fell.pci) == (FaultKind.FALLEN_OFF, 79, PLACE)
    opened = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  575.51.03  Release Build  (x@y)"
    assert list(statements(opened)) == [DriverLoaded("575.51.03")]
    assert list(statements("Linux version 6.8.0-60-generic (x@y)")) == [Booted()]


def test_the_three_lines_of_a_lost_gpu_name_it_and_then_say_so() -> None:
    lines = [
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2901) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    ]
    assert list(statements("\n".join(lines))) == [LostNamed("0000:18:00.0"), Lost(lines[2])]


HEADS = st.sampled_from(
    [
        f"NVRM: Xid (PCI:{HERE}): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 01 ({WORDS})",
        f"NVRM: Xid (PCI:{HERE} GPU-I:01): 13, pid=1, name=a, b",
        f"NVRM: Xid (PCI:{HERE}): 154, GPU recovery action changed from 0x0 (None) to 0x1 (Reset)",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 x",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15",
    ]
)


@given(st.lists(st.one_of(HEADS, st.text(max_size=20)), max_size=4), st.integers(0, 200), st.text(max_size=5))
@settings(max_examples=200)
def test_any_text_and_any_torn_line_is_read(parts: list[str], cut: int, put: str) -> None:
    text = "".join(parts)
    for said in statements(f"NVRM: {text[:cut]}{put}{text[cut:]}"):
        assert replace(said) == said


@pytest.mark.parametrize("piece", ["NVRM: Xid (", "NVRM:", "(", "0x", "a:", ", ", "pid=", "Kernel Module ", " "])
def test_long_repetitions_are_read_in_linear_time(piece: str) -> None:
    head = f"NVRM: Xid (PCI:{HERE}): 145, pid=1, name="
    for start in ("NVRM: ", head, "NVRM: loading NVIDIA UNIX ", "nvidia-nvswitch"):
        list(statements(start + piece * 20_000))
