"""Following a kernel log: each fault once, whatever is read again, torn apart or repeated."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from domain import fault_scan
from domain.fault_scan import FaultScan, Gap, SeenFault
from domain.kernel_log import Record, read_record

HERE = "0000:18:00"
THERE = "0000:3b:00"
FELL = "GPU has fallen off the bus."
LOST = (
    f"NVRM: The NVIDIA GPU {HERE}.0",
    "NVRM: (PCI ID: 10de:2901) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


def xid(code: int, rest: str = "", gpu: str = HERE) -> str:
    return f"NVRM: Xid (PCI:{gpu}): {code}{rest}"


def sxid(rest: str, code: int = 20034) -> str:
    return f"nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): {code}, {rest}"


def told(scan: FaultScan, lines: Sequence[str]) -> tuple[list[SeenFault], list[Gap]]:
    """Return the faults as they stand after the last line, in the order of their first."""
    faults: dict[int, SeenFault] = {}
    gaps = []
    for place, line in enumerate(lines, start=1):
        record = read_record(line)
        for each in scan.read(record, place) if record else ():
            if isinstance(each, Gap):
                gaps.append(each)
            else:
                faults[each.number] = each
    return list(faults.values()), gaps


def seen(*lines: str) -> list[SeenFault]:
    return told(FaultScan(), lines)[0]


def short(faults: Sequence[SeenFault]) -> list[tuple[int, int, int]]:
    return [(each.fault.code, each.line, each.count) for each in faults]


def test_equal_faults_that_follow_each_other_are_one_with_a_count() -> None:
    lines = [f"[{second:5d}.0] {xid(13, ', pid=41, name=x, Graphics')} {second}" for second in (1, 2, 11, 30)]
    assert short(seen(*lines)) == [(13, 1, 3), (13, 4, 1)]


def test_without_times_equal_faults_are_one() -> None:
    assert short(seen(xid(31), xid(31), xid(13), xid(31))) == [(31, 1, 3), (13, 3, 1)]


def test_another_gpu_instance_process_or_link_is_another_fault() -> None:
    lines = [
        xid(13),
        xid(13, gpu=THERE),
        f"NVRM: Xid (PCI:{HERE} GPU-I:01): 13",
        xid(13, ", pid=41, name=x"),
        xid(74, ", NVLink: error on link 1(0x0)"),
        xid(74, ", NVLink: error on link 2(0x0)"),
        xid(69, gpu="0001:ab:cd"),
        xid(69, gpu="0001:ab:ce"),
    ]
    assert [each.count for each in seen(*lines)] == [1] * 8


def test_a_gpu_whose_own_lines_came_before_is_told_with_uuid_and_board() -> None:
    lines = [
        "NVRM: GPU at PCI:0000:18:00: GPU-0a1b2c3d-0000",
        "NVRM: GPU Board Serial Number: 165",
        xid(119),
        sxid("x"),
    ]
    one, switch = seen(*lines)
    assert (one.gpu_uuid, one.board_serial, switch.gpu_uuid) == ("GPU-0a1b2c3d-0000", "165", None)
    assert seen("NVRM: GPU Board Serial Number: 165", xid(119))[0].board_serial is None


def test_a_removed_channel_after_another_xid_follows_from_it() -> None:
    faults = seen(
        f"[1.0] {xid(119)}",
        f"[2.0] {xid(154, ', GPU recovery action changed from 0x0 (None) to 0x1 (Reset)')}",
        f"[50.0] {xid(45, ', pid=41, name=x, Ch 1')}",
        f"[99.0] {xid(45, ', pid=42, name=y, Ch 1')}",
        f"[100.0] {xid(45, gpu=THERE)}",
        f"[101.0] {xid(45, ', Ch 2 caused by previous Xid 149', gpu=THERE)}",
    )
    assert [each.fault.caused_by for each in faults] == [None, None, 119, None, None, 149]


def test_changes_of_the_recovery_action_are_never_folded() -> None:
    up = xid(154, ", GPU recovery action changed from 0x0 (None) to 0x1 (Reset)")
    down = xid(154, ", GPU recovery action changed from 0x1 (Reset) to 0x0 (None)")
    assert [each.fault.recovery for each in seen(up, down, up)] == [1, 0, 1]


def test_the_lines_of_a_switchs_error_are_one_and_its_own_word_counts() -> None:
    data, head, severity = sxid("Data {0x1}"), sxid("Fatal, Link 30 LTSSM"), sxid("Severity 1 Engine instance 00")
    (one,) = seen(f"[1.0] {data}", f"[1.1] {head}", f"[1.2] {severity}")
    assert (one.count, one.line, one.fault.is_fatal, one.fault.link) == (1, 1, True, 30)
    mild = sxid("Non-fatal, Link 31 x")
    assert [(each.count, each.fault.is_fatal) for each in seen(mild, head, mild)] == [(3, True)]
    assert short(seen(f"[1.0] {head}", f"[3.0] {head}")) == [(20034, 1, 1), (20034, 2, 1)]


def test_a_gpu_that_fell_off_the_bus_counts_once_whatever_the_words() -> None:
    again = f"NVRM: GPU {HERE}.0: {FELL}"
    assert short(seen(xid(79, f", {FELL}"), again, *LOST)) == [(79, 1, 1)]
    assert short(seen(*LOST, again, xid(79, f", {FELL}"))) == [(79, 3, 1)]
    assert [each.fault.kind for each in seen(*LOST)] == ["fallen_off"]
    # The two last of the three lines belong to the GPU that was named before.
    assert short(seen(again, *LOST[1:])) == [(79, 1, 1)]
    assert [each.fault.pci for each in seen(again, f"NVRM: GPU {THERE}.0: {FELL}")] == [
        "00000000:18:00.0",
        "00000000:3B:00.0",
    ]


def test_two_lost_gpus_that_nothing_names_are_two() -> None:
    faults = seen(LOST[2], LOST[2])
    assert [(each.fault.kind, each.fault.pci) for each in faults] == [("fallen_off", None)] * 2


def test_a_board_that_is_not_supported_fell_off_no_bus() -> None:
    assert seen(LOST[0], "NVRM: (PCI ID: 10de:2901) installed in this system is not supported") == []


def test_a_rate_that_the_driver_limits_makes_the_count_a_lower_bound() -> None:
    limited = f"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{HERE} (printing 1 of every 30)."
    faults = seen(
        f"[1.0] {xid(119)}", f"[1.1] {xid(119, gpu=THERE)}", f"[2.0] {limited}", f"[90.0] {xid(119)}", xid(13)
    )
    assert [(each.fault.code, each.is_at_least) for each in faults] == [
        (119, True),
        (119, False),
        (119, True),
        (13, False),
    ]


def test_what_others_write_to_the_kernels_log_is_no_fault() -> None:
    assert seen(f"12,5,6,-;{xid(79)}", f"user  :warn  : {xid(79)}") == []


def test_records_that_are_read_again_are_known_by_their_numbers() -> None:
    log = [f"4,5,100,-;{xid(13)}", f"6,6,110,-;{xid(31)}", "6,7,120,-;other"]
    scan = FaultScan("boot")
    first, gaps = told(scan, log)
    assert ([(each.fault.code, each.sequence, each.boot_id) for each in first], gaps) == (
        [(13, 5, "boot"), (31, 6, "boot")],
        [],
    )
    assert told(scan, log) == ([], [])
    # A number that comes twice with a later time is no other record: the kernel numbers none twice in a boot.
    assert told(scan, [f"4,6,130,-;{xid(31)}", f"4,8,140,-;{xid(31)}"])[0][0].count == 2


def test_numbers_that_begin_anew_are_another_boots() -> None:
    faults, gaps = told(FaultScan(), [f"4,900,70000000,-;{xid(79)}", f"4,3,20,-;{xid(79)}"])
    assert ([each.sequence for each in faults], gaps) == ([900, 3], [])


def test_another_boot_forgets_what_belonged_to_the_one_before() -> None:
    for start in ("Linux version 6.8.0-60-generic (x@y)", '{"_TRANSPORT":"kernel","_BOOT_ID":"b","MESSAGE":"x"}'):
        lines = ["NVRM: GPU at PCI:0000:18:00: GPU-0a1b2c3d-0000", xid(79), start, xid(79), xid(45)]
        first, second, third = seen(*lines)
        assert (first.gpu_uuid, second.gpu_uuid) == ("GPU-0a1b2c3d-0000", None)
        assert third.fault.caused_by == 79


def test_a_driver_that_is_loaded_is_that_of_what_follows() -> None:
    loaded = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23"
    assert [each.driver_version for each in seen(xid(13), loaded, xid(31))] == [None, "570.86.15"]


def test_records_that_are_missing_are_a_gap() -> None:
    scan = FaultScan()
    assert told(scan, ["6,5,100,-;a", "6,6,101,-;a", " SUBSYSTEM=pci", "6,17,110,-;a"])[1] == [Gap(4, 10)]
    assert scan.overrun(5) == Gap(5)
    # How many an overrun lost is not counted again.
    assert told(scan, ["6,99,200,-;a"])[1] == []


def test_what_is_remembered_is_bounded() -> None:
    scan = FaultScan()
    for number in range(fault_scan.REMEMBERED_MAX + 50):
        scan.read(Record(message=xid(45, f", pid={number}, name=x")))
        scan.read(Record(message=f"NVRM: GPU at PCI:{number % 65536:04x}:01:00: GPU-{number:08x}"))
    assert len(scan._bursts) == len(scan._gpus) == fault_scan.REMEMBERED_MAX


LINES = st.sampled_from(
    [
        *LOST,
        xid(79),
        xid(45),
        xid(45, ", Ch 1 caused by previous Xid 45"),
        xid(154, ", GPU recovery action changed from 0x0 (None) to 0x1 (Reset)"),
        sxid("Data {0x1}"),
        sxid("Fatal, Link 1"),
        "Linux version 6.8.0",
        "NVRM: GPU Board Serial Number: 1",
    ]
)


@given(st.lists(st.tuples(st.sampled_from(["", "[7.5] ", "4,9,70,-;", "4,2,10,-;"]), LINES), max_size=12))
@settings(max_examples=150)
def test_any_order_of_lines_is_read_and_counted_once(drawn: list[tuple[str, str]]) -> None:
    lines = [prefix + line for prefix, line in drawn]
    faults, _ = told(FaultScan(), lines)
    assert sum(each.count for each in faults) <= len(lines)
    assert [each.number for each in faults] == list(range(1, len(faults) + 1))
